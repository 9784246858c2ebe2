//! Bridges for a guest whose `/sys` hides them, from the distances that its cloud's topology file states.
//!
//! NCCL takes any bus id that is unique for a bridge. These are those of Azure's files, `ffff:ff:01.0` and on, unless the
//! machine has such a function. `/sys` cannot be asked for their link, so it is written: a link of a current generation at full
//! width, which makes no path the bottleneck that a real one would not be.

use std::collections::{BTreeMap, BTreeSet};

use crate::distance::{Cells, Distance, DistanceSource};
use crate::machine::Machine;
use crate::pci::PciAddress;

/// What NCCL would otherwise read from `/sys`.
pub(super) const ATTRIBUTES: &str = " class=\"0x060400\" vendor=\"0x0000\" device=\"0x0000\" \
     subsystem_vendor=\"0x0000\" subsystem_device=\"0x0000\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"";

/// Invented bridges above each device, nearest first, for devices that have none of their own.
#[derive(Default)]
pub(super) struct Invented {
    above: BTreeMap<PciAddress, Vec<PciAddress>>,
    bridges: BTreeSet<PciAddress>,
}

type Edges = Vec<(PciAddress, PciAddress)>;

impl Invented {
    /// Nothing, unless a topology file states distances between `bare` devices: a matrix is no file that NCCL reads.
    pub(super) fn new(machine: &Machine, bare: &BTreeSet<PciAddress>) -> Self {
        let mut invented = Self::default();
        let near = groups(bare, &edges(machine, Distance::Pix));
        let mut names = names(machine);
        for members in groups(bare, &edges(machine, Distance::Pxb)) {
            let switches = near.iter().filter(|group| group.is_subset(&members));
            let switches: Vec<&BTreeSet<PciAddress>> = switches.collect();
            let top = if switches.len() > 1 {
                names.next()
            } else {
                None
            };
            for group in switches.into_iter().filter(|_| members.len() > 1) {
                let above: Vec<PciAddress> = names.next().into_iter().chain(top).collect();
                invented.bridges.extend(&above);
                for device in group {
                    invented.above.insert(*device, above.clone());
                }
            }
        }
        invented
    }

    pub(super) fn above(&self, device: PciAddress) -> Vec<PciAddress> {
        self.above.get(&device).cloned().unwrap_or_default()
    }

    pub(super) fn has(&self, bridge: PciAddress) -> bool {
        self.bridges.contains(&bridge)
    }
}

/// Bus ids that no function of the machine has.
fn names(machine: &Machine) -> impl Iterator<Item = PciAddress> + '_ {
    let numbers = (0..8).flat_map(|function| (1..32).map(move |device| (device, function)));
    let addresses = numbers.map(|(device, function)| PciAddress {
        domain: 0xffff,
        bus: 0xff,
        device,
        function,
    });
    addresses.filter(|address| !machine.functions.contains_key(address))
}

/// Devices that a topology file states to be within a distance of each other.
fn edges(machine: &Machine, within: Distance) -> Edges {
    let file = |source: &DistanceSource| matches!(source, DistanceSource::TopologyFile(_));
    let Some(stated) = machine.stated.as_ref().filter(|s| file(&s.source)) else {
        return Edges::new();
    };
    let gpus: BTreeMap<usize, PciAddress> = machine
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu.index, gpu.pci?)))
        .collect();
    let nics: BTreeMap<usize, PciAddress> = machine
        .nics
        .iter()
        .filter_map(|nic| Some((nic.index, nic.pci?)))
        .collect();
    let of = |cells: &Cells,
              rows: &BTreeMap<usize, PciAddress>,
              columns: &BTreeMap<usize, PciAddress>| {
        let mut found = Edges::new();
        for (a, row) in cells {
            let near = row.iter().filter(|(_, distance)| **distance <= within);
            found.extend(near.filter_map(|(b, _)| Some((*rows.get(a)?, *columns.get(b)?))));
        }
        found
    };
    let mut edges = of(&stated.cells, &gpus, &nics);
    edges.extend(of(&stated.gpu_cells, &gpus, &gpus));
    edges.extend(of(&stated.nic_cells, &nics, &nics));
    edges
}

/// The devices, in groups that edges connect, in the order of the smallest address.
fn groups(devices: &BTreeSet<PciAddress>, edges: &Edges) -> Vec<BTreeSet<PciAddress>> {
    let mut label: BTreeMap<PciAddress, PciAddress> = devices.iter().map(|d| (*d, *d)).collect();
    let mut settled = false;
    while !settled {
        settled = true;
        for (a, b) in edges {
            let (Some(&of_a), Some(&of_b)) = (label.get(a), label.get(b)) else {
                continue;
            };
            if of_a != of_b {
                label.insert(*a, of_a.min(of_b));
                label.insert(*b, of_a.min(of_b));
                settled = false;
            }
        }
    }
    let mut groups: BTreeMap<PciAddress, BTreeSet<PciAddress>> = BTreeMap::new();
    for (device, first) in label {
        groups.entry(first).or_default().insert(device);
    }
    groups.into_values().collect()
}
