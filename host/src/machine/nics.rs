//! RDMA devices: `/sys/class/infiniband` is their index, PCI class codes are not.
//!
//! A device of hardware has a `device` link. Soft-RoCE has none in older kernels; its `parent` file names the network
//! interface below it, whose function then counts as its own.

use std::collections::{BTreeMap, BTreeSet};

use topology::fact::Fact;
use topology::machine::{Nic, NicRole, PciFunction};
use topology::pci::PciAddress;

use super::{bond, ports};
use crate::parse::{function_named, function_of, natural, numa_node};
use crate::root::Root;

/// One entry per RDMA device.
pub(crate) const INFINIBAND: &str = "/sys/class/infiniband";
/// One entry per `/dev/infiniband/uverbs<N>`.
pub(crate) const VERBS: &str = "/sys/class/infiniband_verbs";
/// One entry per network interface.
pub(crate) const NET: &str = "/sys/class/net";

/// RDMA devices in the natural order of their names.
pub(crate) fn read(
    root: &Root,
    functions: &BTreeMap<PciAddress, PciFunction>,
    notes: &mut Vec<String>,
) -> Vec<Nic> {
    let mut names = match root.entries(INFINIBAND) {
        Fact::Known(names) => names,
        Fact::Absent => Vec::new(),
        Fact::Unreadable(why) => {
            notes.push(format!("RDMA devices are not readable: {why}"));
            Vec::new()
        }
    };
    names.sort_by(|a, b| natural(a, b));
    let uverbs = uverbs_by_device(root);
    let mut nics: Vec<Nic> = names
        .iter()
        .filter_map(|name| nic(root, name, functions, &uverbs, notes))
        .collect();
    let with_rdma: BTreeSet<_> = nics.iter().filter_map(|nic| nic.pci).collect();
    for (index, nic) in nics.iter_mut().enumerate() {
        nic.index = index;
        nic.bond = bond::is_bond(root, nic, &with_rdma);
    }
    nics
}

fn nic(
    root: &Root,
    name: &str,
    functions: &BTreeMap<PciAddress, PciFunction>,
    uverbs: &BTreeMap<String, u32>,
    notes: &mut Vec<String>,
) -> Option<Nic> {
    let path = format!("{INFINIBAND}/{name}");
    root.resolve(&path)
        .map_err(|error| notes.push(format!("{path} is left out: {}", error.chain())))
        .ok()?;
    let (pci, netdevs) = place(root, &path, notes);
    let function = pci.and_then(|pci| functions.get(&pci));
    if let (Some(pci), None) = (pci, function) {
        notes.push(format!(
            "{path}: its PCI function {pci} is not in /sys/bus/pci/devices"
        ));
    }
    let ids =
        function.and_then(|function| Some((*function.vendor.known()?, *function.device.known()?)));
    Some(Nic {
        index: 0,
        rdma: Some(name.to_owned()),
        pci,
        numa: function.map_or_else(
            || numa_node(root, &format!("{path}/device/numa_node")),
            |f| f.numa.clone(),
        ),
        netdevs,
        ports: ports::read(root, &path),
        physfn: function_named(root, &format!("{path}/device/physfn")),
        bond: false,
        uverbs: uverbs
            .get(name)
            .copied()
            .map_or_else(|| uverbs_of(root, &path), Fact::Known),
        ids: Fact::from(ids),
        role: if pci.is_some() {
            NicRole::Compute
        } else {
            NicRole::Ignore
        },
    })
}

/// The PCI function and the network interfaces of a device.
fn place(root: &Root, path: &str, notes: &mut Vec<String>) -> (Option<PciAddress>, Vec<String>) {
    let device = function_of(root, &format!("{path}/device"));
    let mut netdevs = root
        .entries(&format!("{path}/device/net"))
        .known()
        .cloned()
        .unwrap_or_default();
    netdevs.sort_by(|a, b| natural(a, b));
    match device {
        Fact::Known(pci) => return (Some(pci), netdevs),
        Fact::Absent => {}
        Fact::Unreadable(why) => {
            notes.push(format!("{path}: its PCI function is not readable: {why}"));
        }
    }
    let Fact::Known(parent) = root.read(&format!("{path}/parent")) else {
        notes.push(format!("{path}: no PCI function, so it is not paired"));
        return (None, netdevs);
    };
    let pci = function_of(root, &format!("{NET}/{parent}/device"))
        .known()
        .copied();
    let place = pci.map_or_else(|| "none".to_owned(), |pci| pci.to_string());
    notes.push(format!(
        "{path}: a software device over {parent}, whose PCI function ({place}) counts as its own"
    ));
    (
        pci,
        if netdevs.is_empty() {
            vec![parent]
        } else {
            netdevs
        },
    )
}

fn uverbs_by_device(root: &Root) -> BTreeMap<String, u32> {
    let names = root.entries(VERBS).known().cloned().unwrap_or_default();
    let numbered = names
        .iter()
        .filter_map(|name| Some((name, uverbs_number(name)?)));
    numbered
        .filter_map(|(name, number)| {
            Some((root.text(&format!("{VERBS}/{name}/ibdev")).ok()?, number))
        })
        .collect()
}

/// The function's own list, where it has exactly one; a function with several RDMA devices does not say whose is whose.
fn uverbs_of(root: &Root, path: &str) -> Fact<u32> {
    match root.entries(&format!("{path}/device/infiniband_verbs")) {
        Fact::Known(names) => {
            let numbers: Vec<u32> = names
                .iter()
                .filter_map(|name| uverbs_number(name))
                .collect();
            if let [one] = numbers[..] {
                Fact::Known(one)
            } else {
                Fact::Absent
            }
        }
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why),
    }
}

fn uverbs_number(name: &str) -> Option<u32> {
    name.strip_prefix("uverbs")?.parse().ok()
}
