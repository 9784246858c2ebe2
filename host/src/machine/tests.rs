use topology::fact::Fact;
use topology::machine::{LinkLayer, NicRole, PciKind, PciParent, PortState};

use tree::{GPU, NIC, Tree, pair};

mod functions;
pub(super) mod tree;

#[test]
fn a_pair_is_read_with_its_ancestry() {
    let machine = pair().read();
    assert_eq!(machine.notes, Vec::<String>::new());
    let kinds: Vec<_> = machine
        .functions
        .iter()
        .map(|(pci, function)| (pci.to_string(), function.kind))
        .collect();
    let expected = [
        ("0000:10:01.0", PciKind::RootPort),
        ("0000:11:00.0", PciKind::SwitchUpstream),
        ("0000:12:00.0", PciKind::SwitchDownstream),
        ("0000:12:01.0", PciKind::SwitchDownstream),
        ("0000:13:00.0", PciKind::Gpu),
        ("0000:14:00.0", PciKind::Nic),
    ];
    assert_eq!(kinds, expected.map(|(pci, kind)| (pci.to_owned(), kind)));
    let parent = |pci: &str| machine.functions[&pci.parse().unwrap()].parent.clone();
    assert_eq!(
        parent("0000:10:01.0"),
        PciParent::HostBridge("pci0000:10".to_owned())
    );
    assert_eq!(
        parent("0000:13:00.0"),
        PciParent::Bridge("0000:12:00.0".parse().unwrap())
    );
    let gpu = &machine.gpus[0];
    assert_eq!(
        gpu.uuid,
        Fact::Known("GPU-01234567-89ab-cdef-0123-456789abcdef".to_owned())
    );
    assert_eq!(
        (&gpu.minor, &gpu.numa, &gpu.bar1_bytes),
        (&Fact::Known(0), &Fact::Known(1), &Fact::Known(128 << 30))
    );
    let nic = &machine.nics[0];
    assert_eq!(
        (nic.rdma.as_deref(), &nic.netdevs[..]),
        (Some("mlx5_0"), &["ib0".to_owned()][..])
    );
    assert_eq!(
        (&nic.uverbs, &nic.ids),
        (&Fact::Known(3), &Fact::Known((0x15b3, 0x2330)))
    );
    let port = &nic.ports[0];
    assert_eq!(
        (&port.state, &port.link_layer),
        (
            &Fact::Known(PortState::Active),
            &Fact::Known(LinkLayer::InfiniBand)
        )
    );
    assert_eq!((port.number, &port.rate_mbps), (1, &Fact::Known(400_000)));
}

#[test]
fn garbage_is_unreadable_in_its_place_and_nowhere_else() {
    let tree = pair();
    tree.file(&format!("sys/devices/{GPU}/numa_node"), "-7\n")
        .file(&format!("sys/devices/{NIC}/device"), "garbage\n");
    tree.file(
        &format!("sys/devices/{NIC}/infiniband/mlx5_0/ports/1/state"),
        "9: ODD\n",
    );
    tree.file(
        "proc/driver/nvidia/gpus/0000:13:00.0/information",
        "GPU UUID: GPU-????????-????-????-????-????????????\nDevice Minor: x\n",
    );
    std::fs::remove_file(tree.path(&format!("sys/devices/{NIC}/infiniband/mlx5_0/ports/1/rate")))
        .unwrap();
    std::fs::create_dir(tree.path(&format!("sys/devices/{NIC}/infiniband/mlx5_0/ports/1/rate")))
        .unwrap();
    let machine = tree.read();
    let (gpu, nic) = (&machine.gpus[0], &machine.nics[0]);
    assert!(
        matches!(&gpu.numa, Fact::Unreadable(why) if why.ends_with("numa_node: `-7` is no NUMA node"))
    );
    assert!(matches!(&gpu.uuid, Fact::Unreadable(why) if why.contains("once the GPU was opened")));
    assert!(matches!(&gpu.minor, Fact::Unreadable(why) if why.contains("`x` is no device minor")));
    assert_eq!((&gpu.product, &nic.ids), (&Fact::Absent, &Fact::Absent));
    assert!(
        matches!(&nic.ports[0].state, Fact::Unreadable(why) if why.contains("`9: ODD` is no port state"))
    );
    assert!(matches!(&nic.ports[0].rate_mbps, Fact::Unreadable(why) if why.contains("directory")));
    assert_eq!(nic.ports[0].link_layer, Fact::Known(LinkLayer::InfiniBand));
}

#[test]
fn minus_one_is_no_numa_node() {
    let tree = pair();
    tree.file(&format!("sys/devices/{GPU}/numa_node"), "-1\n");
    assert_eq!(tree.read().gpus[0].numa, Fact::Absent);
}

#[test]
fn links_that_lead_nowhere_or_in_circles_are_notes() {
    let tree = pair();
    tree.link("sys/bus/pci/devices/0000:20:00.0", "../../../devices/gone");
    tree.link("sys/bus/pci/devices/0000:21:00.0", "0000:22:00.0")
        .link("sys/bus/pci/devices/0000:22:00.0", "0000:21:00.0");
    tree.link("sys/bus/pci/devices/garbage", "../../../devices")
        .link("sys/class/infiniband/mlx5_9", "../gone");
    tree.link("sys/bus/pci/devices/0000:23:00.0", "../../../../../up");
    let machine = tree.read();
    assert_eq!(
        (
            machine.functions.len(),
            machine.nics.len(),
            machine.notes.len()
        ),
        (6, 1, 6)
    );
    for (note, part) in machine.notes.iter().zip([
        "no such file",
        "symbolic links",
        "symbolic links",
        "above the root",
        "no PCI address",
        "mlx5_9",
    ]) {
        assert!(note.contains(part), "{note}");
    }
}

#[test]
fn a_directory_that_is_a_file_is_a_note() {
    let tree = Tree::new();
    tree.file("sys/bus/pci/devices", "")
        .file("sys/class/infiniband", "")
        .file("proc/driver/nvidia/gpus", "");
    let notes = tree.read().notes;
    assert_eq!(notes.len(), 3, "{notes:?}");
}

#[test]
fn what_looks_like_a_gpu_is_left_out() {
    let tree = pair();
    tree.function("pci0000:30/0000:30:00.0", "0x068000\n", "0x10de\n", "0\n");
    tree.function("pci0000:30/0000:30:00.1", "0x040300\n", "0x10de\n", "0\n");
    tree.function("pci0000:30/0000:30:01.0", "0x030000\n", "0x1a03\n", "0\n");
    tree.function("pci0000:30/0000:30:02.0", "0x030200\n", "0x10de\n", "0\n");
    tree.link(
        "sys/devices/pci0000:30/0000:30:02.0/physfn",
        "../0000:30:00.0",
    );
    let machine = tree.read();
    assert_eq!(machine.gpus.len(), 1);
    assert!(
        machine.notes[0].contains("virtual function"),
        "{:?}",
        machine.notes
    );
}

#[test]
fn the_drivers_directories_may_be_in_upper_case_and_may_have_no_function() {
    let tree = Tree::new();
    tree.function("pci000a:00/000a:0c:00.0", "0x030200\n", "0x10de\n", "0\n");
    tree.file(
        "proc/driver/nvidia/gpus/000A:0C:00.0/information",
        "Device Minor: 5\n",
    );
    tree.file(
        "proc/driver/nvidia/gpus/0000:99:00.0/information",
        "Device Minor: 6\n",
    );
    let machine = tree.read();
    assert_eq!(machine.gpus[0].minor, Fact::Known(5));
    assert_eq!(machine.notes.len(), 1);
    assert!(machine.notes[0].contains("0000:99:00.0"));
}

#[test]
fn software_devices_stand_on_their_network_interface_or_on_nothing() {
    let tree = pair();
    tree.link(
        "sys/class/infiniband/rxe0",
        "../../devices/virtual/infiniband/rxe0",
    );
    tree.file("sys/devices/virtual/infiniband/rxe0/parent", "ib0\n");
    tree.link("sys/class/net/ib0", &format!("../../devices/{NIC}/net/ib0"));
    tree.link(
        &format!("sys/devices/{NIC}/net/ib0/device"),
        "../../../0000:14:00.0",
    );
    tree.file("sys/class/infiniband/siw0/node_guid", "0\n");
    let machine = tree.read();
    let nic = |name: &str| {
        machine
            .nics
            .iter()
            .find(|nic| nic.rdma.as_deref() == Some(name))
            .unwrap()
    };
    assert_eq!(
        (nic("rxe0").pci, nic("rxe0").role),
        (nic("mlx5_0").pci, NicRole::Compute)
    );
    assert_eq!(nic("rxe0").netdevs, ["ib0"]);
    assert_eq!((nic("siw0").pci, nic("siw0").role), (None, NicRole::Ignore));
    assert_eq!(machine.notes.len(), 2);
}

#[test]
fn devices_are_numbered_as_people_count() {
    let tree = pair();
    for name in ["mlx5_10", "mlx5_2"] {
        tree.link(
            &format!("sys/class/infiniband/{name}/device"),
            &format!("../../../devices/{NIC}"),
        );
    }
    let machine = tree.read();
    let names: Vec<_> = machine
        .nics
        .iter()
        .map(|nic| (nic.index, nic.name()))
        .collect();
    assert_eq!(
        names,
        [
            (0, "mlx5_0".to_owned()),
            (1, "mlx5_2".to_owned()),
            (2, "mlx5_10".to_owned())
        ]
    );
}

#[test]
fn a_bond_is_known_by_its_name_or_by_its_other_port() {
    let tree = pair();
    tree.function(
        &NIC.replace("14:00.0", "14:00.1"),
        "0x020700\n",
        "0x15b3\n",
        "1\n",
    );
    for (netdev, function) in [
        ("ib0", NIC.to_owned()),
        ("ib1", NIC.replace("14:00.0", "14:00.1")),
    ] {
        tree.link(
            &format!("sys/class/net/{netdev}"),
            &format!("../../devices/{function}/net/{netdev}"),
        );
        tree.link(
            &format!("sys/devices/{function}/net/{netdev}/device"),
            &format!("../../../{}", &function[function.len() - 12..]),
        );
    }
    assert!(!tree.read().nics[0].bond);
    tree.link(
        &format!("sys/devices/{NIC}/net/ib0/master"),
        "/sys/devices/virtual/net/bond0",
    );
    tree.file("sys/devices/virtual/net/bond0/bonding/slaves", "ib0 ib1\n");
    assert!(tree.read().nics[0].bond);
}

#[test]
fn a_five_digit_domain_below_another_device_has_its_own_host_bridge() {
    let tree = Tree::new();
    tree.function("pci0000:e0/0000:e0:05.5", "0x010400\n", "0x8086\n", "0\n");
    tree.function(
        "pci0000:e0/0000:e0:05.5/pci10000:e0/10000:e0:01.0",
        "0x060400\n",
        "0x8086\n",
        "1\n",
    );
    let machine = tree.read();
    let port = &machine.functions[&"10000:e0:01.0".parse().unwrap()];
    assert_eq!(
        (&port.parent, port.kind),
        (
            &PciParent::HostBridge("pci10000:e0".to_owned()),
            PciKind::RootPort
        )
    );
    assert_eq!(machine.notes, Vec::<String>::new());
}

#[test]
fn contradictions_are_shown() {
    let tree = pair();
    tree.file(&format!("sys/devices/{NIC}/numa_node"), "0\n");
    std::fs::remove_file(tree.path("sys/bus/pci/devices/0000:12:00.0")).unwrap();
    let notes = tree.read().notes;
    assert!(
        notes[0].contains("0000:12:00.0 above it is not in"),
        "{notes:?}"
    );
    assert!(
        notes[1].contains("numa_node 0, but 1 on the bridge 0000:12:01.0"),
        "{notes:?}"
    );
}

#[test]
fn a_data_direct_function_is_no_nic() {
    let tree = pair();
    tree.function("pci0000:10/0000:10:02.0", "0x080100\n", "0x15b3\n", "1\n");
    let machine = tree.read();
    assert_eq!(
        machine.functions[&"0000:10:02.0".parse().unwrap()].kind,
        PciKind::Other
    );
    assert_eq!(machine.nics.len(), 1);
}
