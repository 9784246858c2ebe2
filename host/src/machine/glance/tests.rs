use std::os::unix::fs::symlink;

use super::*;
use crate::machine::tests::tree::{NIC, Tree, pair};
use crate::machine::{Options, machine};

fn devices(tree: &Tree) -> Glance {
    let root = tree.root();
    Glance::devices(&root, &machine(&root, &Options::default()))
}

#[test]
fn a_device_that_comes_goes_and_comes_back_under_its_name_is_seen() {
    let tree = pair();
    let entry = tree.path("sys/class/infiniband_verbs/uverbs3");
    tree.file(
        &format!("sys/devices/{NIC}/infiniband_verbs/uverbs3/ibdev"),
        "mlx5_0\n",
    );
    let target = format!("../../devices/{NIC}/infiniband_verbs/uverbs3");
    tree.link("sys/class/infiniband_verbs/uverbs3", &target);
    let first = devices(&tree);
    assert_eq!(devices(&tree), first);
    // The old one stays for a moment, so that its inode number is not given to the new one.
    std::fs::rename(&entry, tree.path("sys/old")).unwrap();
    let gone = devices(&tree);
    assert_ne!(gone, first);
    symlink(target, &entry).unwrap();
    let back = devices(&tree);
    assert_ne!(back, gone);
    assert_ne!(back, first);
    tree.file("dev/infiniband/uverbs3", "");
    assert_ne!(devices(&tree), back);
}

#[test]
fn a_link_that_goes_down_is_seen() {
    let tree = pair();
    let first = devices(&tree);
    let state = format!("sys/devices/{NIC}/infiniband/mlx5_0/ports/1/state");
    tree.file(&state, "1: DOWN\n");
    assert_ne!(devices(&tree), first);
}

#[test]
fn a_setting_that_changes_is_seen_and_a_reading_of_it_is_not() {
    let tree = pair();
    let root = tree.root();
    let netdev = format!("sys/devices/{NIC}/net/eth9/mtu");
    tree.file(&netdev, "1500\n");
    tree.link(
        "sys/class/net/eth9",
        &format!("../../devices/{NIC}/net/eth9"),
    );
    tree.file("etc/infiniband/openib.conf", "ONBOOT=yes\n");
    let machine = machine(&root, &Options::default());
    let look = || Glance::settings(&root, &machine, ["/etc/infiniband", "/etc/nccl.conf"]);
    let mut last = look();
    assert_eq!(look(), last);
    for (path, text) in [
        (netdev.as_str(), "9000\n"),
        ("proc/modules", "mlx5_core 1 0 - Live 0x0\n"),
        ("proc/1/net/if_inet6", "fe80 02 40 20 80 eth9\n"),
        ("proc/1/net/fib_trie", "Main:\n"),
        ("etc/infiniband/openib.conf", "ONBOOT=no\n"),
        ("etc/infiniband/openib.conf.bak", ""),
        ("etc/nccl.conf", "NCCL_DEBUG=INFO\n"),
    ] {
        tree.file(path, text);
        let now = look();
        assert_ne!(now, last, "{path}");
        last = now;
    }
    assert_eq!(look(), last);
}
