//! Machines of a given size: as many GPUs and RDMA functions as asked for, written as a node shows them, and the node file
//! that the agent makes of what it reads there.
//!
//! Two GPUs and their NICs hang below one switch, each switch below its own root; half of the switches is on each NUMA
//! node; every two GPUs have 18 NVLink connections. Up to 64 RDMA functions are physical ones; of more, eight are, and
//! the rest are virtual functions of theirs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};
use host::root::Root;
use serde::Serialize;
use topology::fact::Fact;
use topology::machine::{Gpu, Machine, Nic, NicRole, PciFunction, PciKind, PciParent};
use topology::node_file::{NodeDevice, NodeFile, NodeResource, SCHEMA, devices};
use topology::partition::{ResourcePartition, partition};
use topology::pci::PciAddress;
use topology::policy::{ResourceKind, ResourcePolicy};

use crate::machines;

/// The resource of the pairs.
pub const PAIRS: &str = "rdma/gpudirect";
/// The resource of the NICs that no pair has.
const NICS: &str = "rdma/nic";
/// NVLink connections between every two GPUs.
const NVLINKS: u32 = 18;
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// Size of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Shape {
    /// Number of GPUs, even.
    pub gpus: usize,
    /// Number of RDMA functions.
    pub functions: usize,
}

/// What is measured.
pub const SHAPES: [Shape; 8] = [
    Shape::new(8, 8),
    Shape::new(8, 64),
    Shape::new(8, 136),
    Shape::new(8, 968),
    Shape::new(16, 8),
    Shape::new(16, 64),
    Shape::new(16, 136),
    Shape::new(16, 968),
];

/// A machine that was written.
pub struct Node {
    /// Its `sys` and `proc`.
    pub root: PathBuf,
    /// What the agent would have written of it.
    pub node_file: PathBuf,
}

impl Shape {
    /// A machine of so many.
    #[must_use]
    pub const fn new(gpus: usize, functions: usize) -> Self {
        Self { gpus, functions }
    }

    /// In a few words.
    #[must_use]
    pub fn title(self) -> String {
        format!("{} GPUs, {} RDMA functions", self.gpus, self.functions)
    }

    /// Writes the machine and its node file below a folder, which is made anew.
    pub fn write(self, base: &Path) -> Result<Node> {
        let _ = fs::remove_dir_all(base);
        let (root, run) = (base.join("root"), base.join("run"));
        machines::show(&self.machine(), "bench", &root)?;
        fs::create_dir_all(&run).with_context(|| format!("create {}", run.display()))?;
        let node_file = run.join("node.json");
        let text = node_file_of(&root)?.to_json();
        fs::write(&node_file, text).with_context(|| format!("write {}", node_file.display()))?;
        Ok(Node { root, node_file })
    }

    fn machine(self) -> Machine {
        let mut tree = Tree::new(self.gpus / 2);
        let gpus = (0..self.gpus).map(|index| gpu(index, tree.attach(index / 2, PciKind::Gpu)));
        let gpus = gpus.collect();
        let physical = if self.functions > 64 {
            8
        } else {
            self.functions
        };
        let cards: Vec<PciAddress> = (0..physical)
            .map(|card| tree.attach(card % tree.switches, PciKind::Nic))
            .collect();
        let virtual_functions = (physical..self.functions).map(|index| {
            let (card, number) = (cards[index % physical], index / physical);
            nic(index, tree.beside(card, number), Some(card))
        });
        let virtual_functions: Vec<Nic> = virtual_functions.collect();
        let nics = cards.iter().enumerate();
        let nics = nics.map(|(index, card)| nic(index, *card, None));
        Machine {
            gpus,
            nics: nics.chain(virtual_functions).collect(),
            functions: tree.functions,
            ..Machine::default()
        }
    }
}

impl FromStr for Shape {
    type Err = anyhow::Error;

    /// `8x968`: GPUs and RDMA functions.
    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('x').and_then(|(gpus, functions)| {
            Some(Self::new(gpus.parse().ok()?, functions.parse().ok()?))
        });
        let is_one = |shape: &Self| SHAPES.contains(shape);
        let known = || SHAPES.map(|shape| format!("{}x{}", shape.gpus, shape.functions));
        let unknown = || format!("no machine {text}: one of {}", known().join(", "));
        numbers.filter(is_one).with_context(unknown)
    }
}

/// PCI functions as they are put in, and how many devices each switch has.
struct Tree {
    switches: usize,
    used: Vec<u8>,
    functions: BTreeMap<PciAddress, PciFunction>,
}

impl Tree {
    fn new(switches: usize) -> Self {
        let mut tree = Self {
            switches,
            used: vec![0; switches],
            functions: BTreeMap::new(),
        };
        for switch in 0..switches {
            let host = PciParent::HostBridge(format!("pci{switch:04x}:00"));
            tree.put(address(switch, 0, 1), host, PciKind::RootPort);
            let above = PciParent::Bridge(address(switch, 0, 1));
            tree.put(address(switch, 1, 0), above, PciKind::SwitchUpstream);
        }
        tree
    }

    /// A device below a port of its own.
    fn attach(&mut self, switch: usize, kind: PciKind) -> PciAddress {
        let slot = self.used[switch];
        self.used[switch] += 1;
        let (port, device) = (address(switch, 2, slot), address(switch, 16 + slot, 0));
        let above = PciParent::Bridge(address(switch, 1, 0));
        self.put(port, above, PciKind::SwitchDownstream);
        self.put(device, PciParent::Bridge(port), kind);
        device
    }

    /// A virtual function of a card: the number counts from 1.
    fn beside(&mut self, card: PciAddress, number: usize) -> PciAddress {
        let number = u8::try_from(number).unwrap_or(u8::MAX);
        let own = PciAddress {
            device: number / 8,
            function: number % 8,
            ..card
        };
        let above = self.functions[&card].parent.clone();
        self.put(own, above, PciKind::Nic);
        own
    }

    fn put(&mut self, address: PciAddress, parent: PciParent, kind: PciKind) {
        let switch = usize::try_from(address.domain).unwrap_or_default();
        let function = PciFunction {
            parent,
            kind,
            numa: Fact::Known(u32::from(switch >= self.switches / 2)),
            class: Fact::Absent,
            vendor: Fact::Absent,
            device: Fact::Absent,
        };
        self.functions.insert(address, function);
    }
}

/// Each switch has a domain of its own.
fn address(switch: usize, bus: u8, device: u8) -> PciAddress {
    PciAddress {
        domain: u32::try_from(switch).unwrap_or(u32::MAX),
        bus,
        device,
        function: 0,
    }
}

fn gpu(index: usize, pci: PciAddress) -> Gpu {
    Gpu {
        index,
        uuid: Fact::Absent,
        pci: Some(pci),
        minor: Fact::Absent,
        numa: Fact::Absent,
        product: Fact::Absent,
        bar1_bytes: Fact::Absent,
        nvlinks: BTreeMap::new(),
    }
}

fn nic(index: usize, pci: PciAddress, physfn: Option<PciAddress>) -> Nic {
    Nic {
        index,
        rdma: Some(format!("mlx5_{index}")),
        pci: Some(pci),
        numa: Fact::Absent,
        netdevs: Vec::new(),
        ports: Vec::new(),
        physfn,
        bond: false,
        uverbs: Fact::Absent,
        ids: Fact::Absent,
        role: NicRole::Compute,
    }
}

/// By the agent's own steps: read the machine, split it into resources, describe their devices. All are admitted.
fn node_file_of(root: &Path) -> Result<NodeFile> {
    let mut machine = host::machine::machine(&Root::new(root), &host::machine::Options::default());
    link(&mut machine);
    let paths = machine.paths();
    let policy = |name: &str, kind| ResourcePolicy {
        name: name.to_owned(),
        kind,
        ..ResourcePolicy::default()
    };
    let policies = [
        policy(PAIRS, ResourceKind::Pair),
        policy(NICS, ResourceKind::SharedNic),
    ];
    let split =
        partition(&machine, &paths, &policies).context("split the machine into resources")?;
    let filled = split
        .resources
        .iter()
        .filter(|resource| !resource.devices.is_empty());
    let boot_id = root.join(BOOT_ID);
    let boot_id =
        fs::read_to_string(&boot_id).with_context(|| format!("read {}", boot_id.display()))?;
    Ok(NodeFile {
        schema: SCHEMA.to_owned(),
        boot_id: boot_id.trim().to_owned(),
        node_uid: "0b7c9d3e-0000-4000-8000-000000000001".to_owned(),
        generation: 1,
        install_hash: "0".repeat(64),
        resources: filled
            .map(|resource| offered(resource, devices(&machine, &paths, resource)))
            .collect(),
    })
}

/// Links between GPUs are not in `/sys`.
fn link(machine: &mut Machine) {
    let all: Vec<usize> = machine.gpus.iter().map(|gpu| gpu.index).collect();
    for gpu in &mut machine.gpus {
        let others = all.iter().filter(|other| **other != gpu.index);
        gpu.nvlinks = others.map(|other| (*other, NVLINKS)).collect();
    }
}

fn offered(resource: &ResourcePartition, mut devices: Vec<NodeDevice>) -> NodeResource {
    for device in &mut devices {
        let own = device.id.replace(':', "-");
        let uuid = device.gpu.as_ref().and_then(|gpu| gpu.uuid.as_ref());
        let toolkit = uuid.map(|uuid| format!("nvidia.com/gpu={uuid}"));
        device.cdi_devices = std::iter::once(format!("gpurdma.dev/pair={own}"))
            .chain(toolkit)
            .collect();
        (device.admitted, device.verified) = (true, true);
        "all checks passed".clone_into(&mut device.reason);
    }
    NodeResource {
        name: resource.name.clone(),
        kind: resource.kind,
        hold_down_seconds: 30,
        stable_up_seconds: 60,
        unhealthy_on_nic_down: true,
        envs: Vec::new(),
        nic_lists: Vec::new(),
        devices,
    }
}

#[cfg(test)]
mod tests;
