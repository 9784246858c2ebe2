use std::os::unix::fs::symlink;

use super::*;
use crate::machine::tests::tree::{NIC, Tree, pair};

fn with_ibdev() -> Tree {
    let tree = pair();
    let directory = format!("sys/devices/{NIC}/infiniband_verbs/uverbs3");
    tree.file(&format!("{directory}/ibdev"), "mlx5_0\n");
    tree.link(&format!("{directory}/device"), "../../../0000:14:00.0");
    tree.link(
        "sys/class/infiniband_verbs/uverbs3",
        &format!("../../devices/{NIC}/infiniband_verbs/uverbs3"),
    );
    tree
}

#[test]
fn a_uverbs_device_names_its_rdma_device_and_its_function() {
    let tree = with_ibdev();
    let expected = VerbsOwner {
        rdma: Fact::Known("mlx5_0".to_owned()),
        pci: Fact::Known("0000:14:00.0".parse().unwrap()),
    };
    assert_eq!(owner(&tree.root(), 3), expected);
    assert_eq!(owner(&tree.root(), 4), VerbsOwner::NOBODY);
}

#[test]
fn a_trace_shows_what_comes_goes_and_comes_back_under_its_name() {
    let tree = with_ibdev();
    let first = trace(&tree.root());
    assert_eq!(trace(&tree.root()), first);
    let entry = tree.path("sys/class/infiniband_verbs/uverbs3");
    let target = std::fs::read_link(&entry).unwrap();
    // The old one stays for a moment, so that its inode number is not given to the new one.
    std::fs::rename(&entry, tree.path("sys/old")).unwrap();
    let gone = trace(&tree.root());
    assert_ne!(gone, first);
    symlink(target, &entry).unwrap();
    let back = trace(&tree.root());
    assert_ne!(back, gone);
    assert_ne!(back, first);
    tree.file("dev/infiniband/uverbs3", "");
    assert_ne!(trace(&tree.root()), back);
}
