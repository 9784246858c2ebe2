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
fn a_held_device_tells_its_owner_until_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::new(dir.path());
    assert!(Held::open(&root, 3).is_none());
    root.put(&format!("{VERBS}/uverbs3/ibdev"), "mlx5_3\n")
        .unwrap();
    let held = Held::open(&root, 3).unwrap();
    assert_eq!(held.owner(), Some(owner(&root, 3)));
    std::fs::remove_file(dir.path().join("sys/class/infiniband_verbs/uverbs3/ibdev")).unwrap();
    root.put(&format!("{VERBS}/uverbs3/ibdev"), "mlx5_9\n")
        .unwrap();
    assert_eq!(held.owner(), None);
}
