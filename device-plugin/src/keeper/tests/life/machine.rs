//! Machines of random shape, and what of them is there.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use topology::fact::Fact;
use topology::machine::{
    Gpu, LinkLayer, Machine, Nic, NicRole, PciFunction, PciKind, PciParent, Port, PortState,
};
use topology::pci::PciAddress;

use super::MAX;
use crate::link::{Seen, Sightings};

/// One to six GPUs and up to six NICs in the slots of four switches, two of them at each root.
pub(super) fn machine() -> impl Strategy<Value = Machine> {
    let slots = |count| proptest::collection::vec(0..4_u8, count);
    (slots(1..=MAX), slots(0..=MAX)).prop_map(|(gpus, nics)| hardware(&gpus, &nics))
}

/// A machine whose GPUs and NICs are at these switches.
pub(super) fn hardware(gpus: &[u8], nics: &[u8]) -> Machine {
    let mut machine = Machine::default();
    for (index, switch) in gpus.iter().enumerate() {
        let pci = attach(&mut machine, *switch, 0x20 + index, PciKind::Gpu);
        machine.gpus.push(Gpu {
            index,
            uuid: Fact::Known(uuid(index)),
            pci: Some(pci),
            minor: Fact::Absent,
            numa: Fact::Known(u32::from(switch / 2)),
            product: Fact::Absent,
            bar1_bytes: Fact::Absent,
            nvlinks: BTreeMap::new(),
        });
    }
    for (index, switch) in nics.iter().enumerate() {
        let pci = attach(&mut machine, *switch, 0x40 + index, PciKind::Nic);
        machine.nics.push(nic(index, pci, u32::from(switch / 2)));
    }
    machine
}

fn uuid(index: usize) -> String {
    format!("GPU-{index:08x}-0000-0000-0000-000000000000")
}

fn nic(index: usize, pci: PciAddress, numa: u32) -> Nic {
    Nic {
        index,
        rdma: Some(format!("mlx5_{index}")),
        pci: Some(pci),
        numa: Fact::Known(numa),
        netdevs: Vec::new(),
        ports: vec![Port {
            number: 1,
            state: Fact::Known(PortState::Active),
            link_layer: Fact::Known(LinkLayer::InfiniBand),
            rate_mbps: Fact::Known(400_000),
        }],
        physfn: None,
        bond: false,
        uverbs: Fact::Known(u32::try_from(index).unwrap()),
        ids: Fact::Absent,
        role: NicRole::Compute,
    }
}

fn attach(machine: &mut Machine, switch: u8, bus: usize, kind: PciKind) -> PciAddress {
    let address = |bus: u8| PciAddress {
        domain: u32::from(switch / 2),
        bus,
        device: 0,
        function: 0,
    };
    let above = address(1 + switch);
    let root = PciParent::HostBridge(format!("pci{:04x}:00", switch / 2));
    let own = address(u8::try_from(bus).unwrap());
    let function = |parent, kind| PciFunction {
        parent,
        kind,
        numa: Fact::Absent,
        class: Fact::Absent,
        vendor: Fact::Absent,
        device: Fact::Absent,
    };
    let upstream = function(root, PciKind::SwitchUpstream);
    machine.functions.insert(above, upstream);
    let leaf = function(PciParent::Bridge(above), kind);
    machine.functions.insert(own, leaf);
    own
}

/// A machine and what has happened to it.
pub(super) struct Hardware {
    whole: Machine,
    gone_gpus: BTreeSet<usize>,
    gone_nics: BTreeSet<usize>,
    without_driver: BTreeSet<usize>,
    pulled: BTreeSet<usize>,
}

fn toggle(set: &mut BTreeSet<usize>, at: usize) {
    if !set.remove(&at) {
        set.insert(at);
    }
}

impl Hardware {
    pub(super) fn new(whole: Machine) -> Self {
        Self {
            whole,
            gone_gpus: BTreeSet::new(),
            gone_nics: BTreeSet::new(),
            without_driver: BTreeSet::new(),
            pulled: BTreeSet::new(),
        }
    }

    pub(super) fn toggle_gpu(&mut self, at: usize) {
        toggle(&mut self.gone_gpus, at);
    }

    pub(super) fn toggle_nic(&mut self, at: usize) {
        toggle(&mut self.gone_nics, at);
    }

    pub(super) fn toggle_driver(&mut self, at: usize) {
        toggle(&mut self.without_driver, at);
    }

    pub(super) fn toggle_cable(&mut self, at: usize) {
        toggle(&mut self.pulled, at);
    }

    /// What the agent reads.
    pub(super) fn seen(&self) -> Machine {
        let mut seen = self.whole.clone();
        seen.gpus.retain(|gpu| !self.gone_gpus.contains(&gpu.index));
        seen.nics.retain(|nic| !self.gone_nics.contains(&nic.index));
        for gpu in &mut seen.gpus {
            if self.without_driver.contains(&gpu.index) {
                gpu.uuid = Fact::Absent;
            }
        }
        seen
    }

    /// What the plugin sees of the ports.
    pub(super) fn sightings(&self) -> Sightings {
        let there = |nic: &&Nic| !self.gone_nics.contains(&nic.index);
        let nics = self.whole.nics.iter().filter(there);
        let port = |nic: &Nic| {
            let down = self.pulled.contains(&nic.index);
            let seen = if down { Seen::Down } else { Seen::Up };
            ((nic.name(), 1), seen)
        };
        nics.map(port).collect()
    }
}
