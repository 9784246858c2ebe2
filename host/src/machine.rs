//! The machine model, read from `/sys` and `/proc/driver/nvidia`.
//!
//! Called by the agent, by its one-shot commands and by tests. Nothing fails: what cannot be read is `Unreadable` in its
//! place, and what contradicts itself is a note. Follows the kernel's `Documentation/ABI/testing/sysfs-bus-pci` and
//! `sysfs-class-infiniband`. Links between GPUs are not in `/sys`; the `nvml` feature adds them.

pub(crate) mod bond;
pub(crate) mod config;
pub mod express;
pub(crate) mod functions;
pub mod glance;
pub(crate) mod gpus;
pub(crate) mod nics;
pub mod ports;
pub mod verbs;

use std::collections::{BTreeMap, BTreeSet};

use topology::fact::Fact;
use topology::machine::{Machine, PciFunction, PciKind, PciParent};
use topology::pci::PciAddress;

use crate::facts::network::Depth;
use crate::root::Root;

/// What counts as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// PCI vendors whose display and accelerator functions are GPUs.
    pub gpu_vendors: BTreeSet<u16>,
    /// How much of the network is read for [`crate::facts::facts`].
    pub network: Depth,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gpu_vendors: BTreeSet::from([0x10de]),
            network: Depth::Full,
        }
    }
}

/// Reads the machine below `root`. GPUs are numbered in the order of their PCI addresses, RDMA devices in the natural
/// order of their names.
#[must_use]
pub fn machine(root: &Root, options: &Options) -> Machine {
    let mut notes = Vec::new();
    let mut functions = functions::read(root, &mut notes);
    let gpus = gpus::read(root, &functions, options, &mut notes);
    let nics = nics::read(root, &functions, &mut notes);
    let marks = nics.iter().filter_map(|nic| Some((nic.pci?, PciKind::Nic)));
    let marks = marks.chain(gpus.iter().filter_map(|gpu| Some((gpu.pci?, PciKind::Gpu))));
    for (pci, kind) in marks {
        if let Some(function) = functions.get_mut(&pci) {
            function.kind = kind;
        }
    }
    notes.extend(contradictions(&functions));
    notes.sort();
    notes.dedup();
    Machine {
        gpus,
        nics,
        functions,
        stated: None,
        tree_file: None,
        notes,
    }
}

/// Bridges that are missing, and functions on another NUMA node than the bridge above them.
fn contradictions(functions: &BTreeMap<PciAddress, PciFunction>) -> Vec<String> {
    let mut notes = Vec::new();
    for (address, function) in functions {
        let PciParent::Bridge(bridge) = function.parent else {
            continue;
        };
        let Some(above) = functions.get(&bridge) else {
            notes.push(format!(
                "{address}: the bridge {bridge} above it is not in /sys/bus/pci/devices"
            ));
            continue;
        };
        if let (Fact::Known(own), Fact::Known(other)) = (&function.numa, &above.numa)
            && own != other
        {
            notes.push(format!(
                "{address}: numa_node {own}, but {other} on the bridge {bridge} above it"
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests;
