//! One test for each thing that is odd, with what must not be told beside it. Ids of reports as in `docs/reports.md`.

use std::collections::{BTreeMap, BTreeSet};

use host::facts::Sourced;
use host::facts::fabric::{Netdev, RdmaDevice, RdmaPort};
use host::facts::pci_link::PciLink;
use host::facts::tuning::pcie::{AcsBits, PcieFunction};
use topology::fact::Fact;
use topology::machine::{Gpu, PciFunction, PciKind, PciParent};
use topology::pci::PciAddress;

use super::*;
use crate::modules::{ModuleName, ModuleState};
use crate::test_network::{machine_with, nic};

fn pci(text: &str) -> PciAddress {
    text.parse().unwrap()
}

fn found<T>(value: T) -> Sourced<T> {
    Sourced {
        source: "the test".to_owned(),
        fact: Fact::Known(value),
    }
}

fn gpu() -> Gpu {
    Gpu {
        index: 0,
        uuid: Fact::Known("GPU-0".to_owned()),
        pci: Some(pci("0000:13:00.0")),
        minor: Fact::Known(0),
        numa: Fact::Absent,
        product: Fact::Absent,
        bar1_bytes: Fact::Absent,
        nvlinks: BTreeMap::new(),
    }
}

/// A GPU and an Ethernet NIC of a host on which nothing is odd.
fn node() -> (HostState, Machine) {
    let mut machine = machine_with(vec![nic(0, "eth0")]);
    machine.gpus.push(gpu());
    let mut state = HostState::default();
    state.facts.tuning.hypervisor = Fact::Known(false);
    state.facts.netdevs.insert("eth0".to_owned(), netdev(4200));
    state.facts.links = BTreeMap::from([
        (pci("0000:13:00.0"), link("2.5 GT/s PCIe", 16)),
        (pci("0000:01:00.0"), link("32.0 GT/s PCIe", 16)),
    ]);
    (state, machine)
}

fn netdev(mtu: u32) -> Netdev {
    Netdev {
        mtu: Fact::Known(mtu),
        address: Fact::Absent,
        state: Fact::Absent,
        speed_mbps: Fact::Absent,
        master: Fact::Absent,
    }
}

fn link(speed: &str, width: u32) -> PciLink {
    PciLink {
        current_speed: Fact::Known(speed.to_owned()),
        current_width: Fact::Known(width),
        max_speed: Fact::Known("32.0 GT/s PCIe".to_owned()),
        max_width: Fact::Known(16),
        iommu_group: Fact::Absent,
        iommu_type: Fact::Absent,
    }
}

/// `ID component` of all.
fn told(state: &HostState, machine: &Machine, injection: Option<&Injection>) -> Vec<String> {
    let found = findings(state, machine, injection).into_iter();
    found
        .map(|finding| format!("{} {}", finding.id, finding.component))
        .collect()
}

#[test]
fn nothing_odd_and_nothing_known_say_nothing() {
    let (state, machine) = node();
    assert_eq!(told(&state, &machine, None), Vec::<String>::new());
    assert!(findings(&HostState::default(), &machine, None).is_empty());
}

// G39: an idle GPU saves power; a NIC does not, and lanes never come back by themselves.
#[test]
fn lanes_are_missed_and_an_idle_gpus_speed_is_not() {
    let (mut state, machine) = node();
    let links = &mut state.facts.links;
    links.insert(pci("0000:13:00.0"), link("2.5 GT/s PCIe", 8));
    links.insert(pci("0000:01:00.0"), link("16.0 GT/s PCIe", 16));
    let seen = findings(&state, &machine, None);
    assert!(seen[0].message.contains("with 8 of 16 lanes"));
    assert!(
        seen[1]
            .message
            .contains("at 16.0 GT/s PCIe of 32.0 GT/s PCIe")
    );
    assert_eq!(
        told(&state, &machine, None),
        ["PCIE_LINK_DEGRADED GPU0", "PCIE_LINK_DEGRADED mlx5_0"]
    );
    // What a guest sees is its host's doing; a virtual function has no link.
    state.facts.tuning.hypervisor = Fact::Known(true);
    assert!(findings(&state, &machine, None).is_empty());
}

// G19: the group's type counts.
#[test]
fn an_iommu_that_translates_is_told_by_its_groups_type() {
    let (mut state, mut machine) = node();
    let of = |kind: &str| PciLink {
        iommu_group: Fact::Known("17".to_owned()),
        iommu_type: Fact::Known(kind.to_owned()),
        ..link("32.0 GT/s PCIe", 16)
    };
    let nic = pci("0000:01:00.0");
    state.facts.links.insert(nic, of("identity"));
    assert!(findings(&state, &machine, None).is_empty());
    state.facts.links.insert(nic, of("DMA-FQ"));
    assert_eq!(told(&state, &machine, None), ["IOMMU_TRANSLATING mlx5_0"]);
    machine.gpus.clear();
    assert!(findings(&state, &machine, None).is_empty());
}

/// A switch above both, whose ports redirect.
fn behind_a_switch(state: &mut HostState, machine: &mut Machine) {
    let function = |parent, kind| PciFunction {
        parent,
        kind,
        numa: Fact::Absent,
        class: Fact::Absent,
        vendor: Fact::Known(0x1000),
        device: Fact::Known(0xc030),
    };
    let below = |text: &str| PciParent::Bridge(pci(text));
    let root = PciParent::HostBridge("pci0000:10".to_owned());
    machine.functions = BTreeMap::from([
        (pci("0000:10:00.0"), function(root, PciKind::RootPort)),
        (
            pci("0000:11:00.0"),
            function(below("0000:10:00.0"), PciKind::SwitchUpstream),
        ),
        (
            pci("0000:12:00.0"),
            function(below("0000:11:00.0"), PciKind::SwitchDownstream),
        ),
        (
            pci("0000:12:01.0"),
            function(below("0000:11:00.0"), PciKind::SwitchDownstream),
        ),
        (
            pci("0000:13:00.0"),
            function(below("0000:12:00.0"), PciKind::Gpu),
        ),
        (
            pci("0000:01:00.0"),
            function(below("0000:12:01.0"), PciKind::Nic),
        ),
    ]);
    state.facts.tuning.passed_through = Fact::Known(BTreeMap::new());
    let control = |acs| PcieFunction {
        acs,
        ats: Fact::Absent,
        max_payload: Fact::Absent,
        max_read_request: Fact::Absent,
        slot_power: Fact::Absent,
        temperature: Fact::Absent,
        iommu_group: Fact::Absent,
        iommu_type: Fact::Absent,
    };
    let on = AcsBits {
        capability: 0x5f,
        control: 0x1d,
    };
    for port in ["0000:10:00.0", "0000:12:00.0", "0000:12:01.0"] {
        let port = pci(port);
        state
            .facts
            .tuning
            .pcie
            .insert(port, control(Fact::Known(on)));
    }
}

// G17, G18: slow or failing, while host memory shows the full rate and nobody has asked for anything.
#[test]
fn redirection_is_told_though_nobody_asked() {
    let (mut state, mut machine) = node();
    behind_a_switch(&mut state, &mut machine);
    assert_eq!(
        told(&state, &machine, None),
        [
            "ACS_REDIRECT_ON_GDR_PATH 0000:12:00.0",
            "ACS_REDIRECT_ON_GDR_PATH 0000:12:01.0"
        ]
    );
    // It keeps guests apart, or is the host's.
    let held = BTreeMap::from([(pci("0000:13:00.0"), "vfio-pci".to_owned())]);
    state.facts.tuning.passed_through = Fact::Known(held);
    assert!(findings(&state, &machine, None).is_empty());
    state.facts.tuning.passed_through = Fact::Known(BTreeMap::new());
    state.facts.vendor = found("QEMU".to_owned());
    assert!(findings(&state, &machine, None).is_empty());
}

// G51.
#[test]
fn an_mtu_of_1500_is_told_and_4200_is_not() {
    let (mut state, mut machine) = node();
    state.facts.netdevs.insert("eth0".to_owned(), netdev(1500));
    assert_eq!(
        told(&state, &machine, None),
        ["ROCE_ACTIVE_MTU_1024 mlx5_0"]
    );
    let message = &findings(&state, &machine, None)[0].message;
    assert!(
        message.contains("MTU of 1500") && message.contains("1024 bytes"),
        "{message}"
    );
    machine.nics[0].role = NicRole::Management;
    assert!(findings(&state, &machine, None).is_empty());
}

fn with_pkeys(keys: &[(u32, u16)]) -> (HostState, Machine) {
    let (mut state, mut machine) = node();
    machine.nics[0].ports[0].link_layer = Fact::Known(topology::machine::LinkLayer::InfiniBand);
    let port = RdmaPort {
        physical_state: Fact::Absent,
        lid: Fact::Absent,
        sm_lid: Fact::Absent,
        gids: Fact::Absent,
        pkeys: Fact::Known(keys.iter().copied().collect()),
    };
    let device = RdmaDevice {
        firmware: Fact::Absent,
        board_id: Fact::Absent,
        ports: BTreeMap::from([(1, port)]),
    };
    state.facts.rdma.insert("mlx5_0".to_owned(), device);
    (state, machine)
}

// G69, G70.
#[test]
fn a_first_pkey_that_reaches_nobody_is_told_with_the_one_that_does() {
    for keys in [&[(1, 0x8012)][..], &[(0, 0x7fff), (1, 0x8012)]] {
        let (state, machine) = with_pkeys(keys);
        let message = &findings(&state, &machine, None)[0].message;
        assert!(message.contains("NCCL_IB_PKEY=1"), "{message}");
        assert!(message.contains("UCX_IB_PKEY=0x0012"), "{message}");
    }
    for keys in [&[(0, 0xffff), (1, 0x8012)][..], &[(0, 0x7fff)], &[]] {
        let (state, machine) = with_pkeys(keys);
        assert!(findings(&state, &machine, None).is_empty(), "{keys:?}");
    }
}

// G41.
#[test]
fn a_bond_is_told_to_need_several_queue_pairs() {
    let (state, mut machine) = node();
    machine.nics[0].bond = true;
    assert_eq!(told(&state, &machine, None), ["LAG_NEEDS_MULTI_QP mlx5_0"]);
}

// G63: the data path does not need it.
#[test]
fn without_rdma_cm_a_warning_and_still_a_device() {
    let (state, mut machine) = node();
    machine.nics[0].uverbs = Fact::Known(0);
    let uverbs = "/dev/infiniband/uverbs0".to_owned();
    let mut injection = Injection {
        nodes: BTreeSet::from([uverbs.clone()]),
        ..Injection::default()
    };
    assert_eq!(injection.nic(&machine.nics[0]), Ok(vec![uverbs]));
    assert_eq!(
        told(&state, &machine, Some(&injection)),
        ["RDMA_UCM_NOT_LOADED rdma_ucm"]
    );
    injection.nodes.insert("/dev/infiniband/rdma_cm".to_owned());
    assert!(findings(&state, &machine, Some(&injection)).is_empty());
}

// G66, D8.
#[test]
fn an_exclusive_mode_is_told_with_both_ways_out() {
    let (mut state, machine) = node();
    state.facts.tuning.rdma_netns.shared = Fact::Known(false);
    let message = &findings(&state, &machine, None)[0].message;
    assert!(message.contains("tuning.rdmaNetns: Shared"), "{message}");
    assert!(message.contains("hostNetwork: true"), "{message}");
    state.facts.tuning.rdma_netns.shared = Fact::Known(true);
    assert!(findings(&state, &machine, None).is_empty());
}

// G1: no reason to call a node unready.
#[test]
fn a_loaded_peermem_that_old_nccl_does_not_see_is_an_info() {
    let (mut state, machine) = node();
    let name = ModuleName::new("nvidia_peermem").unwrap();
    state.modules = Fact::Known([(name, ModuleState::Live)].into_iter().collect());
    // Nobody could look: nothing is said.
    assert!(findings(&state, &machine, None).is_empty());
    state.facts.peer_memory_clients.fact = Fact::Absent;
    let seen = findings(&state, &machine, None);
    assert_eq!(seen[0].id, "PEERMEM_INVISIBLE_TO_OLD_NCCL");
    assert_eq!(seen[0].severity, crds::node::Severity::Info);
    state.facts.peer_memory_clients = found(vec!["nv_mem".to_owned()]);
    assert!(findings(&state, &machine, None).is_empty());
}
