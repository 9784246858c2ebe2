use super::*;

#[test]
fn what_was_read_is_told_from_what_was_named_or_lies_elsewhere() {
    let log = concat!(
        "12 openat(AT_FDCWD</>, \"/w/root\", O_RDONLY|O_PATH) = 3</w/root>\n",
        "12 openat2(3</w/root>, \"./sys/a\", {flags=O_RDONLY}, 24) = 4</w/root/sys/real>\n",
        "13 openat2(3</w/root>, \"./sys/link\", {flags=O_PATH}, 24) = 5</w/root/sys/link>\n",
        "13 openat2(3</w/root>, \"./sys/none\", {flags=O_RDONLY}, 24) = -1 ENOENT (No such file or directory)\n",
        "13 pread64(7</w/root/sys/held>, \"mlx5_0\\n\", 65, 0) = 7\n",
        "13 openat(AT_FDCWD</>, \"/etc/passwd\", O_RDONLY) = 6</etc/passwd>\n",
    );
    let expected = ["/w/root/sys/held", "/w/root/sys/real"].map(PathBuf::from);
    let expected = BTreeSet::from(expected);
    assert_eq!(opened(log, Path::new("/w")), expected);
}
