use super::*;

#[test]
fn the_second_is_told_who_has_it_and_gets_it_after_him() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let first = take(&root, "node-agent run", now).unwrap();
    let refused = take(&root, "node-agent apply", now).unwrap_err();
    let text = refused.to_string();
    let pid = std::process::id();
    assert!(
        text.contains(&format!(
            "node-agent run, pid {pid}, since 2027-01-15T08:00:00Z"
        )),
        "{text}"
    );
    drop(first);
    let second = take(&root, "apply", now).unwrap();
    let written = std::fs::read_to_string(root.join(LOCK_FILE)).unwrap();
    assert!(
        written.starts_with("apply, pid"),
        "nothing of the first is left: {written}"
    );
    drop(second);
}

#[test]
fn a_holder_that_wrote_nothing_is_a_holder() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    std::fs::create_dir_all(root.join(RUN_DIR)).unwrap();
    let file = File::create(root.join(LOCK_FILE)).unwrap();
    file.lock().unwrap();
    let refused = take(&root, "x", Timestamp::now()).unwrap_err().to_string();
    assert!(refused.contains("did not say who"), "{refused}");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    std::fs::create_dir_all(root.join(LOCK_FILE)).unwrap();
    let failed = take(&root, "x", Timestamp::now()).unwrap_err();
    assert!(
        matches!(
            failed,
            LockError::Io {
                operation: "open",
                ..
            }
        ),
        "{failed}"
    );
}

/// Between fork and exec a program that another thread starts has every descriptor of this one.
#[test]
fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    let first = take(&root, "run", Timestamp::now()).unwrap();
    let copy = first.file.try_clone().unwrap();
    drop(first);
    take(&root, "apply", Timestamp::now()).unwrap();
    drop(copy);
}
