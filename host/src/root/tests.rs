use std::os::unix::fs::symlink;
use std::process::Command;

use topology::fact::Fact;

use super::{READ_LIMIT, Root, RootError};

fn tree() -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("sys/devices/a")).unwrap();
    std::fs::write(directory.path().join("sys/devices/a/class"), "0x060400\n").unwrap();
    let root = Root::new(directory.path());
    (directory, root)
}

fn unreadable(fact: Fact<String>) -> String {
    match fact {
        Fact::Unreadable(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_read_without_the_white_space_around_it() {
    let (_keep, root) = tree();
    assert_eq!(
        root.read("/sys/devices/a/class"),
        Fact::Known("0x060400".to_owned())
    );
    assert_eq!(root.read("/sys/devices/a/none"), Fact::Absent);
}

#[test]
fn an_absolute_link_counts_from_the_root() {
    let (keep, root) = tree();
    symlink("/sys/devices/a", keep.path().join("link")).unwrap();
    assert_eq!(root.resolve("/link/class").unwrap(), "/sys/devices/a/class");
    assert_eq!(root.read("/link/class"), Fact::Known("0x060400".to_owned()));
    assert_eq!(root.read_link_name("/link"), Fact::Known("a".to_owned()));
}

#[test]
fn the_kernel_s_lookup_and_the_walk_agree() {
    let (keep, root) = tree();
    let link = |target, name| symlink(target, keep.path().join(name)).unwrap();
    link("devices/a", "sys/relative");
    link("/sys/devices", "absolute");
    link("../../../outside", "sys/devices/a/up");
    link("nowhere", "dangling");
    link("cycle", "cycle");
    for path in [
        "/",
        "",
        "/sys/relative/class",
        "sys//./relative/",
        "/absolute/a/class",
        "/sys/relative/../a/class",
        "/sys/devices/a/up",
        "/sys/devices/a/class/..",
        "/sys/devices/a/class/x",
        "/../sys",
        "/dangling",
        "/cycle",
        "/none/class",
    ] {
        let shown = |result: Result<String, RootError>| result.map_err(|error| error.chain());
        assert_eq!(shown(root.resolve(path)), shown(root.walk(path)), "{path}");
    }
}

#[test]
fn a_link_that_climbs_above_the_root_is_refused() {
    let (keep, root) = tree();
    std::fs::write(keep.path().join("outside"), "secret").unwrap();
    let inner = Root::new(keep.path().join("sys"));
    symlink("../../outside", keep.path().join("sys/devices/up")).unwrap();
    symlink("../../../outside", keep.path().join("sys/devices/a/up")).unwrap();
    for path in ["/devices/up", "/devices/a/up", "/../outside"] {
        assert!(
            matches!(inner.bytes(path), Err(RootError::AboveRoot { .. })),
            "{path}"
        );
    }
    assert_eq!(
        root.read("/sys/devices/up"),
        Fact::Known("secret".to_owned())
    );
}

#[test]
fn a_dangling_link_is_absent_and_a_cycle_is_unreadable() {
    let (keep, root) = tree();
    symlink("nowhere", keep.path().join("dangling")).unwrap();
    symlink("two", keep.path().join("one")).unwrap();
    symlink("one", keep.path().join("two")).unwrap();
    assert_eq!(root.read("/dangling"), Fact::Absent);
    assert_eq!(
        root.read_link_name("/dangling"),
        Fact::Known("nowhere".to_owned())
    );
    assert!(unreadable(root.read("/one")).contains("resolve /one: more than 40 symbolic links"));
}

#[test]
fn only_regular_files_are_opened() {
    let (keep, root) = tree();
    assert!(
        unreadable(root.read("/sys/devices"))
            .contains("read /sys/devices: not a regular file but a directory")
    );
    for fifo in ["fifo", "sys/fifo"] {
        let path = keep.path().join(fifo);
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        assert!(unreadable(root.read(&format!("/{fifo}"))).contains("pipe"));
    }
    assert!(
        root.list_dir("/sys/devices/a/class")
            .unwrap_err()
            .chain()
            .starts_with("list /sys/devices/a/class: ")
    );
    assert!(
        unreadable(root.read("/sys/devices/a/class/x"))
            .contains("resolve /sys/devices/a/class/x: ")
    );
}

#[test]
fn a_long_file_is_refused_and_can_be_searched() {
    let (keep, root) = tree();
    let limit = usize::try_from(READ_LIMIT).unwrap();
    std::fs::write(keep.path().join("fits"), vec![b'x'; limit]).unwrap();
    std::fs::write(
        keep.path().join("long"),
        [vec![b'x'; limit], b"\nwanted\n".to_vec()].concat(),
    )
    .unwrap();
    assert_eq!(root.bytes("/fits").unwrap().len(), limit);
    assert!(matches!(
        root.bytes("/long"),
        Err(RootError::TooLarge { .. })
    ));
    assert!(root.any_line("/long", |line| line == "wanted").unwrap());
    assert!(!root.any_line("/long", |line| line == "want").unwrap());
}

#[test]
fn join_never_leaves_the_root() {
    let root = Root::new("/host");
    assert_eq!(root.join("/sys/./class").to_str(), Some("/host/sys/class"));
    assert_eq!(
        root.join("/../../etc/../etc/passwd").to_str(),
        Some("/host/etc/passwd")
    );
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let (keep, root) = tree();
    root.create_dir_all("/run/gpurdma/pairs").unwrap();
    root.create_dir_all("/run/gpurdma/pairs").unwrap();
    for content in ["one", "two"] {
        root.write_atomic("/run/gpurdma/node.json", content.as_bytes())
            .unwrap();
        assert_eq!(
            root.read("/run/gpurdma/node.json"),
            Fact::Known(content.to_owned())
        );
    }
    assert_eq!(
        root.list_dir("/run/gpurdma").unwrap(),
        ["node.json", "pairs"]
    );
    let missing = root.write_atomic("/none/file", b"").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "resolve /none: no such file or directory"
    );
    assert!(
        root.write_atomic("/run/gpurdma/pairs", b"").is_err(),
        "a directory cannot be replaced by a file"
    );
    assert_eq!(
        root.list_dir("/run/gpurdma").unwrap(),
        ["node.json", "pairs"],
        "no temporary file is left"
    );
    drop(keep);
}

#[test]
fn a_link_in_the_place_of_the_file_is_replaced() {
    let (keep, root) = tree();
    std::fs::write(keep.path().join("other"), "kept").unwrap();
    symlink("other", keep.path().join("file")).unwrap();
    root.write_atomic("/file", b"new").unwrap();
    assert_eq!(root.read("/other"), Fact::Known("kept".to_owned()));
    assert_eq!(root.read("/file"), Fact::Known("new".to_owned()));
}

#[test]
fn removing_twice_is_no_error() {
    let (_keep, root) = tree();
    root.remove("/sys/devices/a/class").unwrap();
    root.remove("/sys/devices/a/class").unwrap();
    root.remove("/none/at/all").unwrap();
    assert_eq!(root.read("/sys/devices/a/class"), Fact::Absent);
    assert!(root.remove("/sys/devices/a").is_err());
}

#[cfg(feature = "fixture")]
#[test]
fn links_of_a_fixture_are_relative_and_stay_inside() {
    let (keep, root) = tree();
    root.put_link("/sys/class/x/a", "/sys/devices/a").unwrap();
    let target = std::fs::read_link(keep.path().join("sys/class/x/a")).unwrap();
    assert_eq!(target.to_str(), Some("../../devices/a"));
    assert_eq!(root.resolve("/sys/class/x/a").unwrap(), "/sys/devices/a");
}
