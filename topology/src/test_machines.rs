//! Machines for unit and property tests.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::distance::Distance;
use crate::fact::Fact;
use crate::machine::{
    Gpu, LinkLayer, Machine, Nic, NicRole, PciFunction, PciKind, PciParent, Port, PortState,
};
use crate::pci::PciAddress;

pub(crate) fn gpu(index: usize, pci: Option<PciAddress>) -> Gpu {
    Gpu {
        index,
        uuid: Fact::Absent,
        pci,
        minor: Fact::Absent,
        numa: Fact::Absent,
        product: Fact::Absent,
        bar1_bytes: Fact::Absent,
        nvlinks: BTreeMap::new(),
    }
}

pub(crate) fn nic(index: usize, pci: Option<PciAddress>) -> Nic {
    Nic {
        index,
        rdma: Some(format!("mlx5_{index}")),
        pci,
        numa: Fact::Absent,
        netdevs: Vec::new(),
        ports: vec![Port {
            number: 1,
            state: Fact::Known(PortState::Active),
            link_layer: Fact::Known(LinkLayer::InfiniBand),
            rate_mbps: Fact::Known(400_000),
        }],
        physfn: None,
        bond: false,
        uverbs: Fact::Absent,
        ids: Fact::Absent,
        role: NicRole::Compute,
    }
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

/// Where a device of a random machine hangs: (root, switch below it, second switch below that), and the card's slot.
type Spot = (u8, u8, u8);

fn spot() -> impl Strategy<Value = Spot> {
    (0..2u8, 0..3u8, 0..3u8)
}

fn link() -> impl Strategy<Value = (LinkLayer, u64)> {
    let layer = prop_oneof![Just(LinkLayer::InfiniBand), Just(LinkLayer::Ethernet)];
    (layer, prop_oneof![Just(100_000u64), Just(400_000)])
}

/// A machine of random shape: 2 roots on 2 NUMA nodes, up to two switch levels, NICs of one or two functions.
pub(crate) fn machine(
    gpus: std::ops::RangeInclusive<usize>,
    nics: std::ops::RangeInclusive<usize>,
) -> impl Strategy<Value = Machine> {
    let nic = (spot(), link(), any::<bool>());
    (
        proptest::collection::vec(spot(), gpus),
        proptest::collection::vec(nic, nics),
    )
        .prop_map(|(gpus, nics)| build(&gpus, &nics))
}

fn build(gpus: &[Spot], nics: &[(Spot, (LinkLayer, u64), bool)]) -> Machine {
    let mut machine = Machine::default();
    for (index, spot) in gpus.iter().enumerate() {
        let pci = attach(
            &mut machine,
            *spot,
            u8::try_from(index).unwrap(),
            0,
            PciKind::Gpu,
        );
        let mut gpu = gpu(index, Some(pci));
        gpu.uuid = Fact::Known(format!("GPU-{index:08}"));
        gpu.numa = Fact::Known(u32::from(spot.0));
        machine.gpus.push(gpu);
    }
    let mut last = None;
    for (index, (spot, (layer, rate), second_port)) in nics.iter().enumerate() {
        let (place, slot, function) = match last.filter(|_| *second_port) {
            Some((card, bus)) => (card, bus, 1),
            None => (*spot, 100 + u8::try_from(index).unwrap(), 0),
        };
        last = (function == 0).then_some((place, slot));
        let pci = attach(&mut machine, place, slot, function, PciKind::Nic);
        let mut nic = nic(index, Some(pci));
        nic.numa = Fact::Known(u32::from(place.0));
        (nic.ports[0].link_layer, nic.ports[0].rate_mbps) =
            (Fact::Known(*layer), Fact::Known(*rate));
        machine.nics.push(nic);
    }
    machine
}

fn attach(
    machine: &mut Machine,
    (root, first, second): Spot,
    bus: u8,
    function_number: u8,
    kind: PciKind,
) -> PciAddress {
    let root_name = PciParent::HostBridge(format!("pci{root:04x}:00"));
    let mut above = root_name;
    let mut chain = |address: PciAddress, kind: PciKind| {
        let parent = std::mem::replace(&mut above, PciParent::Bridge(address));
        machine.functions.insert(address, function(parent, kind));
    };
    let address = |domain: u32, bus: u8, function: u8| PciAddress {
        domain,
        bus,
        device: 0,
        function,
    };
    let root = u32::from(root);
    if first > 0 {
        chain(address(root, 200 + first, 0), PciKind::SwitchUpstream);
        if second > 0 {
            chain(
                address(root, 210 + 3 * first + second, 0),
                PciKind::SwitchUpstream,
            );
            chain(
                address(root, 230 + 3 * first + second, 0),
                PciKind::SwitchDownstream,
            );
        }
    }
    let own = address(root + 0x10, bus, function_number);
    chain(own, kind);
    own
}

/// A limit of a policy.
pub(crate) fn limit() -> impl Strategy<Value = Distance> {
    prop_oneof![
        Just(Distance::Pix),
        Just(Distance::Pxb),
        Just(Distance::Phb),
        Just(Distance::Sys)
    ]
}
