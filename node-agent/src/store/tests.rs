use super::*;

fn root() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::new(dir.path());
    (dir, root)
}

#[test]
fn writes_only_on_change() {
    let (_dir, root) = root();
    assert!(write_text(&root, "/a/b/c.json", "1\n").unwrap());
    assert!(!write_text(&root, "/a/b/c.json", "1\n").unwrap());
    assert!(write_text(&root, "/a/b/c.json", "2\n").unwrap());
    assert_eq!(
        read_text(&root, "/a/b/c.json").unwrap().as_deref(),
        Some("2\n")
    );
    assert_eq!(fs::read_dir(root.join("/a/b")).unwrap().count(), 1);
}

#[test]
fn absent_and_broken_are_two_things() {
    let (_dir, root) = root();
    assert_eq!(read_json::<u32>(&root, "/x.json").unwrap(), None);
    write_text(&root, "/x.json", "{").unwrap();
    let error = read_json::<u32>(&root, "/x.json").unwrap_err();
    let chain = error.chain();
    assert!(
        chain.starts_with("read /x.json: not what this version writes: invalid type"),
        "{chain}"
    );
}

#[test]
fn a_host_file_keeps_mode_and_owner_and_link() {
    let (_dir, root) = root();
    write_text(&root, "/etc/real.conf", "A=1\n").unwrap();
    fs::set_permissions(root.join("/etc/real.conf"), Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("/etc/real.conf", root.join("/etc/openib.conf")).unwrap();
    let before = fs::metadata(root.join("/etc/real.conf")).unwrap();
    replace_host_file(&root, "/etc/openib.conf", "A=2\n").unwrap();
    let after = fs::metadata(root.join("/etc/real.conf")).unwrap();
    assert_eq!((after.mode(), after.uid()), (before.mode(), before.uid()));
    assert!(root.join("/etc/openib.conf").is_symlink());
    assert_eq!(
        read_text(&root, "/etc/openib.conf").unwrap().as_deref(),
        Some("A=2\n")
    );
    assert_eq!(fs::read_dir(root.join("/etc")).unwrap().count(), 2);
}
