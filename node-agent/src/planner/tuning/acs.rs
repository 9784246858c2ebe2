//! Redirection between a GPU and its NIC is switched off on the ports between them. Pure.
//!
//! ACS keeps guests apart, so nothing is changed where a guest may hold a device behind the port, where address translation
//! shows that passthrough is wanted, where an IOMMU translates (direct traffic would carry addresses that mean something
//! else), in a guest itself, and on platforms with rules of their own, which rdma-core's `rdma_topo` knows.

use std::collections::{BTreeMap, BTreeSet};

use host::facts::tuning::pcie::{AcsBits, above};
use topology::fact::Fact;
use topology::machine::{Machine, NicRole, PciFunction, PciKind};
use topology::pci::PciAddress;

use super::super::{Plan, World};
use super::{locked_down, tuning};
use crate::action::{Change, TuningChange, redirects};
use crate::findings::FindingId;
use crate::host_state::HostState;

/// Vendor and device of functions whose presence on the path means that `rdma_topo` has to say what is right: root ports of
/// Grace and Vera, switches in NICs, the data-direct function.
const OWN_RULES: &[(u16, u16)] = &[
    (0x10de, 0x22b1),
    (0x10de, 0x22b2),
    (0x10de, 0x22b8),
    (0x10de, 0x2f95),
    (0x10de, 0x2f96),
    (0x15b3, 0x1979),
    (0x15b3, 0x197b),
    (0x15b3, 0x197c),
    (0x15b3, 0x2100),
];

pub(super) fn disable(plan: &mut Plan, world: &World<'_>) {
    let ports = ports(world.machine);
    if ports.is_empty() {
        return;
    }
    if let Some(why) = locked_down(world.state).or_else(|| guest(world.state)) {
        return plan.find(FindingId::AcsNotChanged, "acs", why);
    }
    for (port, tops) in ports {
        port_of(plan, world, port, &tops);
    }
}

/// In a guest the hypervisor decides, and the ports may be its inventions.
fn guest(state: &HostState) -> Option<String> {
    match state.guest() {
        Fact::Known(true) => {
            Some("this is a virtual machine: the ports' ACS is its host's to set".to_owned())
        }
        Fact::Known(false) | Fact::Absent => None,
        Fact::Unreadable(why) => Some(format!(
            "whether this is a virtual machine is unknown: {why}"
        )),
    }
}

/// Ports that surely redirect between a GPU and its NIC, and need not. What protects, and what is unknown, is none of them.
pub(crate) fn needless(state: &HostState, machine: &Machine) -> Vec<PciAddress> {
    let redirects = |port: &PciAddress| {
        let acs = tuning(state).pcie.get(port).map(|function| &function.acs);
        matches!(acs, Some(Fact::Known(acs)) if acs.redirects() != 0)
    };
    if guest(state).is_some() {
        return Vec::new();
    }
    ports(machine)
        .into_iter()
        .filter(|(port, tops)| redirects(port) && refusal(state, machine, tops).is_none())
        .map(|(port, _)| port)
        .collect()
}

fn port_of(plan: &mut Plan, world: &World<'_>, port: PciAddress, tops: &BTreeSet<PciAddress>) {
    let component = port.to_string();
    let read = tuning(world.state)
        .pcie
        .get(&port)
        .map(|function| &function.acs);
    let acs = match read {
        Some(Fact::Known(acs)) if acs.redirects() != 0 => *acs,
        Some(Fact::Known(_)) => {
            let off = TuningChange::AcsRedirects { port, bits: 0 };
            plan.met.insert(Change::Tuning(off));
            return;
        }
        // Without the capability nothing redirects.
        Some(Fact::Absent) => return,
        Some(Fact::Unreadable(why)) => return plan.find(FindingId::HostUnreadable, component, why),
        None => {
            return plan.find(
                FindingId::HostUnreadable,
                component,
                "its configuration space was not read",
            );
        }
    };
    match refusal(world.state, world.machine, tops) {
        Some(why) => plan.find(
            FindingId::AcsNotChanged,
            component,
            format!("{} stays: {why}", redirects(acs.redirects())),
        ),
        None => clear(plan, world, port, acs),
    }
}

fn clear(plan: &mut Plan, world: &World<'_>, port: PciAddress, acs: AcsBits) {
    let to = |bits| Change::Tuning(TuningChange::AcsRedirects { port, bits });
    let seen = format!("{port} has {}", redirects(acs.redirects()));
    plan.ensure(world, to(0), to(acs.redirects()), seen);
}

/// Why the ports of a path are left as they are, all of them: half a path that is direct is none. Looked at is everything
/// below the uppermost bridges of both ends.
fn refusal(state: &HostState, machine: &Machine, tops: &BTreeSet<PciAddress>) -> Option<String> {
    let is_below = |pci: &&PciAddress| {
        tops.contains(*pci)
            || above(machine, **pci)
                .iter()
                .any(|bridge| tops.contains(bridge))
    };
    let below: Vec<_> = machine.functions.keys().filter(is_below).copied().collect();
    own_rules(machine, &below)
        .or_else(|| held_by_guest(state, &below))
        .or_else(|| translated(state, machine, &below))
}

fn own_rules(machine: &Machine, below: &[PciAddress]) -> Option<String> {
    let id = |function: &PciFunction| Some((*function.vendor.known()?, *function.device.known()?));
    let own = |pci: &&PciAddress| {
        machine
            .functions
            .get(pci)
            .and_then(id)
            .is_some_and(|id| OWN_RULES.contains(&id))
    };
    let found = below.iter().find(own)?;
    Some(format!(
        "{found} is of a platform with ACS rules of its own; use `rdma_topo` of rdma-core 62 or later"
    ))
}

fn held_by_guest(state: &HostState, below: &[PciAddress]) -> Option<String> {
    match &tuning(state).passed_through {
        Fact::Known(held) => below.iter().find_map(|pci| {
            let driver = held.get(pci)?;
            Some(format!("{pci} below the same bridge belongs to {driver}: a guest may hold it, and ACS keeps guests apart"))
        }),
        Fact::Absent => None,
        Fact::Unreadable(why) => Some(format!("whether a guest holds a device is unknown: {why}")),
    }
}

/// An IOMMU that translates, or address translation that is on. That an IOMMU is in the way of GPU-direct RDMA by itself says
/// [`crate::inspect`], whatever is asked.
fn translated(state: &HostState, machine: &Machine, below: &[PciAddress]) -> Option<String> {
    let pcie = &tuning(state).pcie;
    let gpus = machine.gpus.iter().filter_map(|gpu| gpu.pci);
    let ends: BTreeSet<_> = gpus
        .chain(machine.nics.iter().filter_map(|nic| nic.pci))
        .collect();
    for (pci, function) in below
        .iter()
        .filter(|pci| ends.contains(*pci))
        .filter_map(|pci| Some((pci, pcie.get(pci)?)))
    {
        if function.ats == Fact::Known(true) {
            let why = format!(
                "ATS of {pci} is on, which passthrough wants together with redirection; set ATS_ENABLED=0 on bare metal"
            );
            return Some(why);
        }
        let kind = match (&function.iommu_group, &function.iommu_type) {
            (Fact::Absent, _) => continue,
            (_, Fact::Known(kind)) if kind == "identity" => continue,
            (_, Fact::Known(kind)) => kind.clone(),
            (Fact::Unreadable(why), _) | (_, Fact::Unreadable(why)) => format!("unknown: {why}"),
            (Fact::Known(_), Fact::Absent) => "unknown".to_owned(),
        };
        let why = format!(
            "the IOMMU of {pci} translates ({kind}), and direct traffic would go to wrong addresses; boot with iommu=pt"
        );
        return Some(why);
    }
    None
}

/// Root ports and downstream ports between each GPU and the NICs below the same bridge, with the uppermost bridges of both; for
/// a GPU without such a NIC, between it and those below the same host bridge.
fn ports(machine: &Machine) -> BTreeMap<PciAddress, BTreeSet<PciAddress>> {
    let compute = machine
        .nics
        .iter()
        .filter(|nic| nic.role == NicRole::Compute);
    let nics: Vec<_> = compute.filter_map(|nic| nic.pci).collect();
    let mut ports: BTreeMap<PciAddress, BTreeSet<PciAddress>> = BTreeMap::new();
    for gpu in machine.gpus.iter().filter_map(|gpu| gpu.pci) {
        let paths: Vec<_> = nics
            .iter()
            .filter_map(|nic| path(machine, gpu, *nic))
            .collect();
        let has_near = paths.iter().any(|path| path.below_a_bridge);
        for path in paths.iter().filter(|path| path.below_a_bridge || !has_near) {
            for port in path.bridges.iter().filter(|pci| is_port(machine, **pci)) {
                ports.entry(*port).or_default().extend(&path.tops);
            }
        }
    }
    ports
}

fn is_port(machine: &Machine, pci: PciAddress) -> bool {
    let kind = machine.functions.get(&pci).map(|function| function.kind);
    matches!(kind, Some(PciKind::RootPort | PciKind::SwitchDownstream))
}

/// The bridges that traffic between two functions passes.
struct Path {
    bridges: Vec<PciAddress>,
    /// The uppermost bridge above each.
    tops: BTreeSet<PciAddress>,
    below_a_bridge: bool,
}

/// `None` where they share no host bridge.
fn path(machine: &Machine, a: PciAddress, b: PciAddress) -> Option<Path> {
    let (left, right) = (above(machine, a), above(machine, b));
    let common = left.iter().find(|bridge| right.contains(bridge));
    let own = |chain: &[PciAddress]| -> Vec<PciAddress> {
        chain
            .iter()
            .take_while(|bridge| Some(*bridge) != common)
            .copied()
            .collect()
    };
    let bridges = [own(&left), own(&right)].concat();
    let below_a_bridge = common.is_some();
    let same_host =
        || host_bridge(machine, a).is_some() && host_bridge(machine, a) == host_bridge(machine, b);
    let tops = [&left, &right]
        .into_iter()
        .filter_map(|chain| chain.last().copied());
    (below_a_bridge || same_host()).then(|| Path {
        bridges,
        tops: tops.collect(),
        below_a_bridge,
    })
}

fn host_bridge(machine: &Machine, pci: PciAddress) -> Option<&str> {
    let top = above(machine, pci).last().copied().unwrap_or(pci);
    match &machine.functions.get(&top)?.parent {
        topology::machine::PciParent::HostBridge(name) => Some(name),
        _ => None,
    }
}
