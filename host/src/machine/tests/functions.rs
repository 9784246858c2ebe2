//! Functions of one card, and what is known by its place rather than by a name.

use topology::fact::Fact;
use topology::machine::{Nic, NicRole, PciKind};

use super::tree::{NIC, Tree, pair};
use crate::machine::Options;
use crate::root::Root;

/// A sub-function's RDMA device sits below an auxiliary device of its card (`mlx5_core.sf.4`).
#[test]
fn a_sub_function_stands_where_its_card_stands() {
    let tree = pair();
    let device = format!("sys/devices/{NIC}/mlx5_core.sf.4");
    tree.file(
        &format!("{device}/infiniband/mlx5_2/ports/1/state"),
        "4: ACTIVE\n",
    )
    .file(&format!("{device}/sfnum"), "88\n")
    .file(&format!("{device}/net/ens1f0s88/mtu"), "9000\n");
    tree.link(
        &format!("{device}/infiniband/mlx5_2/device"),
        "../../../mlx5_core.sf.4",
    );
    tree.link(
        "sys/class/infiniband/mlx5_2",
        &format!("../../devices/{NIC}/mlx5_core.sf.4/infiniband/mlx5_2"),
    );
    let machine = tree.read();
    let (card, sub) = (&machine.nics[0], &machine.nics[1]);
    assert_eq!((sub.name().as_str(), sub.pci), ("mlx5_2", card.pci));
    assert_eq!(
        (sub.role, sub.bond, sub.physfn),
        (NicRole::Compute, false, None)
    );
    assert_eq!(
        (&sub.netdevs[..], &sub.ids),
        (&["ens1f0s88".to_owned()][..], &card.ids)
    );
    let paths = machine.paths();
    assert_eq!(paths.distance(0, 1), paths.distance(0, 0));
    assert_eq!(machine.notes, Vec::<String>::new());
    assert_eq!(captured(&tree), machine.nics);
}

/// RDMA devices of a capture.
fn captured(tree: &Tree) -> Vec<Nic> {
    let copy = tempfile::tempdir().unwrap();
    let root = Root::new(copy.path());
    crate::capture::capture(&tree.root(), &root).unwrap();
    crate::machine::machine(&root, &Options::default()).nics
}

#[test]
fn a_virtual_function_names_its_physical_function() {
    let tree = pair();
    let function = NIC.replace("14:00.0", "14:00.2");
    tree.function(&function, "0x020700\n", "0x15b3\n", "1\n");
    tree.link(&format!("sys/devices/{function}/physfn"), "../0000:14:00.0");
    let device = format!("sys/devices/{function}/infiniband/mlx5_4");
    tree.file(&format!("{device}/ports/1/state"), "4: ACTIVE\n");
    tree.link(&format!("{device}/device"), "../../../0000:14:00.2");
    tree.link(
        "sys/class/infiniband/mlx5_4",
        &format!("../../devices/{function}/infiniband/mlx5_4"),
    );
    let machine = tree.read();
    assert_eq!(
        (machine.nics[0].physfn, machine.nics[1].physfn),
        (None, machine.nics[0].pci)
    );
    let physical: Vec<_> = machine
        .physical_nics()
        .map(topology::machine::Nic::name)
        .collect();
    assert_eq!(physical, ["mlx5_0"]);
    assert_eq!(captured(&tree), machine.nics);
}

/// D44 (kubernetes-sigs/dra-driver-nvidia-gpu#1242): the driver names the NUMA node of a GPU's own memory, where no CPU is.
#[test]
fn the_numa_node_of_a_gpu_is_that_of_its_place_and_not_of_its_memory() {
    let tree = pair();
    tree.file(
        "proc/driver/nvidia/gpus/0000:13:00.0/numa_status",
        "Node: 252\nStatus: online\n",
    );
    assert_eq!(tree.read().gpus[0].numa, Fact::Known(1));
}

/// G34 (deepseek-ai/DeepEP#386): what udev calls a device does not decide what it is.
#[test]
fn a_renamed_device_is_known_by_its_vendor() {
    let tree = pair();
    std::fs::rename(
        tree.path(&format!("sys/devices/{NIC}/infiniband/mlx5_0")),
        tree.path(&format!("sys/devices/{NIC}/infiniband/roce_rail1")),
    )
    .unwrap();
    std::fs::remove_file(tree.path("sys/class/infiniband/mlx5_0")).unwrap();
    tree.link(
        "sys/class/infiniband/roce_rail1",
        &format!("../../devices/{NIC}/infiniband/roce_rail1"),
    );
    let machine = tree.read();
    let nic = &machine.nics[0];
    assert_eq!(
        (nic.name().as_str(), &nic.ids),
        ("roce_rail1", &Fact::Known((0x15b3, 0x2330)))
    );
    assert_eq!(machine.functions[&nic.pci.unwrap()].kind, PciKind::Nic);
}
