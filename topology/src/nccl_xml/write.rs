//! Writes one topology file for a host.
//!
//! What NCCL's parser asks for (`src/graph/xml.cc`): no prolog, no tabs, attributes in quotes. GPUs and NICs are leaf
//! `pci` elements without `gpu`, `nic` or `net` children: NCCL adds those at run time, and a stale one would do harm.
//! Link speeds are left out too where `/sys` has the function, because NCCL reads them there; they are written where the
//! machine comes from a file that states them, and for bridges that are invented.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::invent::{self, Invented};
use crate::fact::Fact;
use crate::machine::{Machine, PciFunction, PciKind, PciLink, PciParent};
use crate::pci::PciAddress;

/// The file's text: every GPU and NIC of the machine and the switches above them, in the order of their addresses. Where a
/// guest hides its switches and a topology file tells the distances, switches are invented that tell the same.
#[must_use]
pub fn write(machine: &Machine) -> String {
    let devices: Vec<(PciAddress, &Fact<u32>)> = device_list(machine);
    let bare = |(device, _): &(PciAddress, _)| switches_above(machine, *device).is_empty();
    let bare = devices
        .iter()
        .filter(|device| bare(device))
        .map(|(device, _)| *device);
    let mut outline = Outline {
        invented: Invented::new(machine, &bare.collect()),
        ..Outline::default()
    };
    for (address, numa) in devices {
        outline.add(machine, address, numa);
    }
    outline.render(machine)
}

fn device_list(machine: &Machine) -> Vec<(PciAddress, &Fact<u32>)> {
    let gpus = machine
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu.pci?, &gpu.numa)));
    let nics = machine
        .nics
        .iter()
        .filter_map(|nic| Some((nic.pci?, &nic.numa)));
    gpus.chain(nics).collect()
}

/// Which element stands below which.
#[derive(Default)]
struct Outline {
    roots: BTreeMap<i64, BTreeSet<PciAddress>>,
    below: BTreeMap<PciAddress, BTreeSet<PciAddress>>,
    invented: Invented,
}

impl Outline {
    fn add(&mut self, machine: &Machine, device: PciAddress, numa: &Fact<u32>) {
        let mut above = switches_above(machine, device);
        if above.is_empty() {
            above = self.invented.above(device);
        }
        let own = |at: &PciAddress| {
            machine
                .functions
                .get(at)
                .and_then(|function| function.numa.known())
        };
        let numa = numa
            .known()
            .or_else(|| std::iter::once(&device).chain(&above).find_map(own));
        let mut child = device;
        for switch in above {
            self.below.entry(switch).or_default().insert(child);
            child = switch;
        }
        self.roots
            .entry(numa.map_or(-1, |numa| i64::from(*numa)))
            .or_default()
            .insert(child);
    }

    fn render(&self, machine: &Machine) -> String {
        let mut text = "<system version=\"1\">\n".to_owned();
        let mut written = BTreeSet::new();
        for (numa, roots) in &self.roots {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  <cpu numaid=\"{numa}\">");
            for root in roots {
                self.element(machine, *root, 2, &mut written, &mut text);
            }
            text.push_str("  </cpu>\n");
        }
        text.push_str("</system>\n");
        text
    }

    /// Each function once: in malformed input two bridges may stand above each other.
    fn element(
        &self,
        machine: &Machine,
        address: PciAddress,
        depth: usize,
        written: &mut BTreeSet<PciAddress>,
        text: &mut String,
    ) {
        if !written.insert(address) {
            return;
        }
        let indent = "  ".repeat(depth);
        let attributes = if self.invented.has(address) {
            invent::ATTRIBUTES.to_owned()
        } else {
            attributes(machine, address)
        };
        let children = self.below.get(&address);
        let end = if children.is_some() { ">" } else { "/>" };
        let _ = writeln!(text, "{indent}<pci busid=\"{address}\"{attributes}{end}");
        for child in children.into_iter().flatten() {
            self.element(machine, *child, depth + 1, written, text);
        }
        if children.is_some() {
            let _ = writeln!(text, "{indent}</pci>");
        }
    }
}

/// Switches above a device, nearest first: upstream ports, as NCCL takes every second bridge. Ends where the tree ends
/// or turns in a circle.
fn switches_above(machine: &Machine, device: PciAddress) -> Vec<PciAddress> {
    let mut met = BTreeSet::from([device]);
    let parent = |at: &PciAddress| match machine.functions.get(at).map(|function| &function.parent)
    {
        Some(PciParent::Bridge(above)) => Some(*above),
        _ => None,
    };
    let chain = std::iter::successors(parent(&device), parent).take_while(|at| met.insert(*at));
    let is_switch = |at: &PciAddress| {
        machine
            .functions
            .get(at)
            .is_some_and(|f| f.kind == PciKind::SwitchUpstream)
    };
    chain.filter(is_switch).collect()
}

fn attributes(machine: &Machine, address: PciAddress) -> String {
    let function = machine.functions.get(&address);
    let mut text = function.map_or_else(String::new, identity);
    let file = machine.tree_file.as_ref();
    if let Some(PciLink { speed, width }) = file.and_then(|file| file.links.get(&address)) {
        let _ = write!(text, " link_speed=\"{speed}\" link_width=\"{width}\"");
    }
    text
}

fn identity(function: &PciFunction) -> String {
    let mut text = String::new();
    if let Some(class) = function.class.known() {
        let _ = write!(text, " class=\"0x{class:06x}\"");
    }
    if let Some((vendor, device)) = function.vendor.known().zip(function.device.known()) {
        let _ = write!(text, " vendor=\"0x{vendor:04x}\" device=\"0x{device:04x}\"");
    }
    text
}
