//! Where everything stands in the picture.
//!
//! NUMA nodes are boxes, one below the other; in each the groups of devices (one top-most switch, host bridge or lone
//! device each) stand side by side and wrap; in each group GPUs stand above NICs. Lines run between them. All texts
//! are of one monospaced size, so their width is known and they cannot overlap.

use std::collections::BTreeMap;

use crate::machine::{Machine, PciKind, PciParent};
use crate::pci::PciAddress;
use crate::report::{nic_label, sorted_gpus, sorted_nics};

pub(super) const CHAR: usize = 7;
pub(super) const LINE: usize = 16;
const GAP: usize = 14;
const BOX_HEIGHT: usize = 2 * LINE + 8;
/// Between GPUs and NICs: room for the pair lines.
const LANE: usize = 70;
const WIDEST: usize = 1600;

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// A box with its lines of text.
#[derive(Clone, Debug)]
pub(super) struct Labelled {
    pub(super) rect: Rect,
    pub(super) lines: Vec<String>,
}

/// The whole picture without its lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) numa_nodes: Vec<Labelled>,
    pub(super) groups: Vec<Labelled>,
    pub(super) gpus: BTreeMap<usize, Labelled>,
    pub(super) nics: BTreeMap<usize, Labelled>,
    pub(super) width: usize,
    pub(super) height: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Device {
    Gpu(usize),
    Nic(usize),
}

/// One device's text and place in the tree.
struct Item {
    device: Device,
    lines: Vec<String>,
    group: String,
    numa: Option<u32>,
}

impl Layout {
    pub(super) fn new(machine: &Machine, top: usize) -> Self {
        let mut by_numa: BTreeMap<(bool, Option<u32>), BTreeMap<String, Vec<Item>>> =
            BTreeMap::new();
        for item in items(machine) {
            let numa = by_numa.entry((item.numa.is_none(), item.numa)).or_default();
            numa.entry(item.group.clone()).or_default().push(item);
        }
        let mut layout = Self {
            width: 2 * GAP,
            height: top,
            ..Self::default()
        };
        for ((_, numa), groups) in by_numa {
            layout.add_numa_node(numa, groups);
        }
        layout.height += GAP;
        layout
    }

    fn add_numa_node(&mut self, numa: Option<u32>, groups: BTreeMap<String, Vec<Item>>) {
        let title = numa.map_or_else(
            || "NUMA node unknown".to_owned(),
            |numa| format!("NUMA node {numa}"),
        );
        let (left, top) = (GAP, self.height);
        let (mut x, mut y) = (left + GAP, top + LINE + GAP);
        let (mut right, mut bottom) = (left + text_width(&title) + 2 * GAP, y);
        for (name, items) in groups {
            let size = group_size(&name, &items);
            if x > left + GAP && x + size.width + GAP > WIDEST {
                (x, y) = (left + GAP, bottom + GAP);
            }
            self.add_group(name, items, Rect { x, y, ..size });
            x += size.width + GAP;
            right = right.max(x);
            bottom = bottom.max(y + size.height);
        }
        let rect = Rect {
            x: left,
            y: top,
            width: right - left,
            height: bottom + GAP - top,
        };
        self.numa_nodes.push(Labelled {
            rect,
            lines: vec![title],
        });
        self.width = self.width.max(right + GAP);
        self.height = top + rect.height + GAP;
    }

    fn add_group(&mut self, name: String, items: Vec<Item>, rect: Rect) {
        let (gpu_row, nic_row) = (rect.y + LINE + GAP, rect.y + LINE + GAP + BOX_HEIGHT + LANE);
        let (mut gpu_x, mut nic_x) = (rect.x + GAP, rect.x + GAP);
        for item in items {
            let width = item_width(&item);
            let (x, y) = match item.device {
                Device::Gpu(_) => (&mut gpu_x, gpu_row),
                Device::Nic(_) => (&mut nic_x, nic_row),
            };
            let labelled = Labelled {
                rect: Rect {
                    x: *x,
                    y,
                    width,
                    height: BOX_HEIGHT,
                },
                lines: item.lines,
            };
            *x += width + GAP;
            match item.device {
                Device::Gpu(index) => self.gpus.insert(index, labelled),
                Device::Nic(index) => self.nics.insert(index, labelled),
            };
        }
        self.groups.push(Labelled {
            rect,
            lines: vec![name],
        });
    }
}

pub(super) fn text_width(text: &str) -> usize {
    text.chars().count() * CHAR
}

fn item_width(item: &Item) -> usize {
    item.lines
        .iter()
        .map(|line| text_width(line))
        .max()
        .unwrap_or(0)
        + 12
}

fn group_size(name: &str, items: &[Item]) -> Rect {
    let row = |of_gpus: bool| -> usize {
        let widths = items
            .iter()
            .filter(|item| matches!(item.device, Device::Gpu(_)) == of_gpus);
        widths.map(|item| item_width(item) + GAP).sum()
    };
    let width = row(true).max(row(false)).max(text_width(name) + GAP) + GAP;
    Rect {
        x: 0,
        y: 0,
        width,
        height: LINE + GAP + 2 * BOX_HEIGHT + LANE + GAP,
    }
}

fn items(machine: &Machine) -> Vec<Item> {
    let gpu = |gpu: &crate::machine::Gpu| Item {
        device: Device::Gpu(gpu.index),
        lines: lines(gpu.name(), gpu.pci),
        group: group(machine, gpu.pci),
        numa: gpu.numa.known().copied(),
    };
    let nic = |nic: &crate::machine::Nic| Item {
        device: Device::Nic(nic.index),
        lines: lines(nic_label(machine, nic), nic.pci),
        group: group(
            machine,
            nic.physfn.filter(|_| !has(machine, nic.pci)).or(nic.pci),
        ),
        numa: nic.numa.known().copied(),
    };
    let gpus = sorted_gpus(machine).into_iter().map(gpu);
    gpus.chain(sorted_nics(machine).into_iter().map(nic))
        .collect()
}

fn has(machine: &Machine, pci: Option<PciAddress>) -> bool {
    pci.is_some_and(|pci| machine.functions.contains_key(&pci))
}

fn lines(name: String, pci: Option<PciAddress>) -> Vec<String> {
    std::iter::once(name)
        .chain(pci.map(|pci| pci.to_string()))
        .collect()
}

/// The top-most switch above a device, else its host bridge.
fn group(machine: &Machine, pci: Option<PciAddress>) -> String {
    let Some(mut at) = pci.filter(|pci| machine.functions.contains_key(pci)) else {
        return "place in the PCIe tree not known".to_owned();
    };
    let mut switch = None;
    // As many steps as there are functions: malformed input may turn in a circle.
    for _ in 0..machine.functions.len() {
        match machine.functions.get(&at).map(|function| &function.parent) {
            Some(PciParent::Bridge(above)) => at = *above,
            Some(PciParent::HostBridge(name)) => {
                return switch.map_or_else(|| format!("host bridge {name}"), switch_name);
            }
            Some(PciParent::Unknown) | None => break,
        }
        if machine
            .functions
            .get(&at)
            .is_some_and(|function| function.kind == PciKind::SwitchUpstream)
        {
            switch = Some(at);
        }
    }
    switch.map_or_else(|| "host bridge not known".to_owned(), switch_name)
}

fn switch_name(switch: PciAddress) -> String {
    format!("switch {switch}")
}
