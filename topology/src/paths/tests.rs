use std::collections::BTreeMap;

use crate::distance::{Cells, Distance, DistanceSource, NcclPath, StatedDistances};
use crate::fact::Fact;
use crate::machine::{Machine, PciFunction, PciKind, PciParent};
use crate::pci::PciAddress;
use crate::test_machines::{gpu, nic};

fn at(text: &str) -> PciAddress {
    text.parse().unwrap()
}

fn function(parent: PciParent, kind: PciKind) -> PciFunction {
    PciFunction {
        parent,
        kind,
        numa: Fact::Absent,
        class: Fact::Absent,
        vendor: Fact::Absent,
        device: Fact::Absent,
    }
}

fn below(parent: &str) -> PciParent {
    PciParent::Bridge(at(parent))
}

fn root(name: &str) -> PciParent {
    PciParent::HostBridge(name.to_owned())
}

/// One GPU and one NIC in a tree of (address, parent, kind).
fn machine(gpu_at: &str, nic_at: &str, tree: Vec<(&str, PciParent, PciKind)>) -> Machine {
    let functions: BTreeMap<_, _> = tree
        .into_iter()
        .map(|(pci, parent, kind)| (at(pci), function(parent, kind)))
        .collect();
    Machine {
        gpus: vec![gpu(0, Some(at(gpu_at)))],
        nics: vec![nic(0, Some(at(nic_at)))],
        functions,
        ..Machine::default()
    }
}

fn distance(machine: &Machine) -> (Distance, Option<u32>) {
    let paths = machine.paths();
    let path = paths.gpu_nic(0, 0).unwrap();
    (path.distance, path.hops)
}

fn one_switch() -> Machine {
    machine(
        "0000:04:00.0",
        "0000:05:00.0",
        vec![
            ("0000:00:01.0", root("pci0000:00"), PciKind::RootPort),
            (
                "0000:02:00.0",
                below("0000:00:01.0"),
                PciKind::SwitchUpstream,
            ),
            (
                "0000:03:00.0",
                below("0000:02:00.0"),
                PciKind::SwitchDownstream,
            ),
            (
                "0000:03:01.0",
                below("0000:02:00.0"),
                PciKind::SwitchDownstream,
            ),
            ("0000:04:00.0", below("0000:03:00.0"), PciKind::Gpu),
            ("0000:05:00.0", below("0000:03:01.0"), PciKind::Nic),
        ],
    )
}

#[test]
fn one_switch_is_pix_and_passes_its_three_ports() {
    assert_eq!(distance(&one_switch()), (Distance::Pix, Some(3)));
}

#[test]
fn a_second_switch_on_the_path_is_pxb() {
    let mut machine = one_switch();
    machine.functions.insert(
        at("0000:04:00.0"),
        function(below("0000:03:00.0"), PciKind::SwitchUpstream),
    );
    machine.functions.insert(
        at("0000:06:00.0"),
        function(below("0000:04:00.0"), PciKind::SwitchDownstream),
    );
    machine.functions.insert(
        at("0000:07:00.0"),
        function(below("0000:06:00.0"), PciKind::Gpu),
    );
    machine.gpus[0].pci = Some(at("0000:07:00.0"));
    assert_eq!(distance(&machine), (Distance::Pxb, Some(5)));
}

#[test]
fn two_functions_of_one_slot_are_pix_without_any_switch() {
    let tree = vec![
        ("0000:80:03.0", root("pci0000:80"), PciKind::RootPort),
        ("0000:84:00.0", below("0000:80:03.0"), PciKind::Gpu),
        ("0000:84:00.1", below("0000:80:03.0"), PciKind::Nic),
    ];
    assert_eq!(
        distance(&machine("0000:84:00.0", "0000:84:00.1", tree)),
        (Distance::Pix, Some(1))
    );
}

fn two_roots(first: &str, second: &str) -> Machine {
    let tree = vec![
        ("0000:00:01.0", root(first), PciKind::RootPort),
        ("0000:01:00.0", below("0000:00:01.0"), PciKind::Gpu),
        ("0000:80:01.0", root(second), PciKind::RootPort),
        ("0000:81:00.0", below("0000:80:01.0"), PciKind::Nic),
    ];
    machine("0000:01:00.0", "0000:81:00.0", tree)
}

#[test]
fn one_host_bridge_is_phb_even_without_numa_nodes() {
    assert_eq!(
        distance(&two_roots("pci0000:00", "pci0000:00")),
        (Distance::Phb, Some(2))
    );
}

#[test]
fn numa_nodes_tell_between_host_bridges_and_their_absence_is_unknown() {
    let mut machine = two_roots("pci0000:00", "pci0000:80");
    assert_eq!(distance(&machine).0, Distance::Unknown);
    machine.gpus[0].numa = Fact::Known(0);
    assert_eq!(distance(&machine).0, Distance::Unknown);
    machine.nics[0].numa = Fact::Known(0);
    assert_eq!(distance(&machine).0, Distance::Node);
    machine.nics[0].numa = Fact::Known(251);
    assert_eq!(distance(&machine).0, Distance::Sys);
    assert_eq!(
        machine.paths().gpu_nic(0, 0).unwrap().nccl,
        Some(NcclPath::Sys)
    );
}

#[test]
fn node_is_phb_to_nccl() {
    let mut machine = two_roots("pci0000:00", "pci0000:80");
    machine.gpus[0].numa = Fact::Known(1);
    machine.nics[0].numa = Fact::Known(1);
    assert_eq!(
        machine.paths().gpu_nic(0, 0).unwrap().nccl,
        Some(NcclPath::Phb)
    );
}

#[test]
fn a_bridge_that_is_named_and_not_described_is_still_shared() {
    let tree = vec![
        ("10000:02:00.0", below("10000:01:00.0"), PciKind::Gpu),
        ("10000:03:00.0", below("10000:01:00.0"), PciKind::Nic),
    ];
    assert_eq!(
        distance(&machine("10000:02:00.0", "10000:03:00.0", tree)).0,
        Distance::Pix
    );
}

#[test]
fn parents_in_a_circle_end_the_walk() {
    let tree = vec![
        (
            "0000:01:00.0",
            below("0000:02:00.0"),
            PciKind::SwitchUpstream,
        ),
        (
            "0000:02:00.0",
            below("0000:01:00.0"),
            PciKind::SwitchUpstream,
        ),
        ("0000:03:00.0", below("0000:01:00.0"), PciKind::Gpu),
        ("0000:04:00.0", below("0000:02:00.0"), PciKind::Nic),
        ("0000:05:00.0", below("0000:05:00.0"), PciKind::Nic),
    ];
    let mut machine = machine("0000:03:00.0", "0000:04:00.0", tree);
    machine.nics.push(nic(1, Some(at("0000:05:00.0"))));
    assert_eq!(distance(&machine).0, Distance::Pxb);
    assert_eq!(machine.paths().distance(0, 1), Distance::Unknown);
}

#[test]
fn a_virtual_function_without_a_place_stands_where_its_physical_function_stands() {
    let mut machine = one_switch();
    machine.nics.push(nic(1, Some(at("0000:05:03.2"))));
    assert_eq!(machine.paths().distance(0, 1), Distance::Unknown);
    machine.nics[1].physfn = Some(at("0000:05:00.0"));
    assert_eq!(machine.paths().distance(0, 1), Distance::Pix);
    assert_eq!(
        machine.paths().nic_nic(1, 0).unwrap().distance,
        Distance::Pix
    );
}

#[test]
fn nccl_flattens_broadcom_levels_so_its_name_stays_open() {
    let mut machine = one_switch();
    machine.functions.insert(
        at("0000:04:00.0"),
        function(below("0000:03:00.0"), PciKind::SwitchUpstream),
    );
    machine.functions.insert(
        at("0000:07:00.0"),
        function(below("0000:04:00.0"), PciKind::Gpu),
    );
    machine.gpus[0].pci = Some(at("0000:07:00.0"));
    assert_eq!(
        machine.paths().gpu_nic(0, 0).unwrap().nccl,
        Some(NcclPath::Pxb)
    );
    for switch in ["0000:02:00.0", "0000:04:00.0"] {
        let switch = machine.functions.get_mut(&at(switch)).unwrap();
        (switch.vendor, switch.device) = (Fact::Known(0x1000), Fact::Known(0xc030));
    }
    let paths = machine.paths();
    let path = paths.gpu_nic(0, 0).unwrap();
    assert_eq!((path.distance, path.nccl), (Distance::Pxb, None));
}

#[test]
fn a_superchip_reaches_its_own_cpus_nics_over_c2c() {
    let mut machine = two_roots("pci0000:00", "pci0000:80");
    machine.gpus[0].product = Fact::Known("NVIDIA GB200".to_owned());
    (machine.gpus[0].numa, machine.nics[0].numa) = (Fact::Known(0), Fact::Known(0));
    assert_eq!(
        machine.paths().gpu_nic(0, 0).unwrap().nccl,
        Some(NcclPath::P2c)
    );
}

fn stated(source: DistanceSource, distance: Distance) -> StatedDistances {
    let cells = Cells::from([(0, BTreeMap::from([(0, distance)]))]);
    StatedDistances {
        source,
        cells,
        gpu_cells: Cells::new(),
        nic_cells: Cells::new(),
    }
}

#[test]
fn what_sys_shows_counts_before_what_somebody_states() {
    let mut machine = one_switch();
    machine.stated = Some(stated(
        DistanceSource::TopologyFile("/etc/topo.xml".to_owned()),
        Distance::Sys,
    ));
    assert_eq!(distance(&machine).0, Distance::Pix);
    let mut machine = two_roots("pci0000:00", "pci0000:80");
    (machine.gpus[0].numa, machine.nics[0].numa) = (Fact::Known(0), Fact::Known(0));
    machine.stated = Some(stated(
        DistanceSource::TopologyFile("/etc/topo.xml".to_owned()),
        Distance::Pix,
    ));
    assert_eq!(distance(&machine).0, Distance::Node);
}

#[test]
fn what_sys_leaves_unknown_is_filled_and_keeps_its_source() {
    let mut machine = two_roots("pci0000:00", "pci0000:80");
    let source = DistanceSource::TopologyFile("/etc/topo.xml".to_owned());
    machine.stated = Some(stated(source.clone(), Distance::Pix));
    let paths = machine.paths();
    let path = paths.gpu_nic(0, 0).unwrap();
    assert_eq!((path.distance, &path.source), (Distance::Pix, &source));
}

#[test]
fn a_device_without_a_bridge_hides_its_ancestry_and_a_topology_file_may_tell() {
    let tree = vec![
        ("0001:00:00.0", root("pci0001:00"), PciKind::Gpu),
        ("0101:00:00.0", root("pci0101:00"), PciKind::Nic),
    ];
    let mut machine = machine("0001:00:00.0", "0101:00:00.0", tree);
    (machine.gpus[0].numa, machine.nics[0].numa) = (Fact::Known(0), Fact::Known(0));
    assert_eq!(distance(&machine).0, Distance::Node);
    machine.stated = Some(stated(DistanceSource::Matrix, Distance::Pix));
    assert_eq!(distance(&machine).0, Distance::Node);
    machine.stated = Some(stated(
        DistanceSource::TopologyFile("/etc/topo.xml".to_owned()),
        Distance::Pix,
    ));
    assert_eq!(distance(&machine).0, Distance::Pix);
}
