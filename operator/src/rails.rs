//! Which NIC of a node has which rail. Pure; [`crate::network`] calls it for the nodes of one cluster.
//!
//! * The first rule of `fabric.rails` that matches decides. Every other NIC of role Compute has the rail of its slot in the
//!   map of its hardware layout ([`layouts`]), which the cluster's status keeps.
//! * A new layout is numbered in the order of PCI addresses: the kernel finds devices in it (`pci_scan_child_bus` of
//!   `drivers/pci/probe.c` goes upwards), machines that are built alike have the same, and it does not move with names, links
//!   or drivers.
//! * Absence is no evidence: a NIC that is not reported keeps its rail, and nothing shifts. Only a rule, a role or hardware
//!   that is seen takes a rail away.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crds::cluster::RailLayout;
use crds::fabric::{NicRole, RailRule};
use crds::node::{NicRail, NicStatus};
use crds::reasons::NodeReason;
use topology::pci::PciAddress;

mod layouts;

use layouts::{Layouts, Slots};

/// Most rails of a node that the CRD takes.
const MOST: usize = 64;

/// Rail of each PCI address.
pub(crate) type Rails = BTreeMap<PciAddress, u32>;

/// What keeps a node from its rails or addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A condition reason.
    pub reason: NodeReason,
    /// What, where, and what to do.
    pub message: String,
}

/// A node, as far as its rails need it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site<'a> {
    /// Its name.
    pub node: &'a str,
    /// Its NICs, as its agent reports them; empty where nothing is reported.
    pub nics: &'a [NicStatus],
    /// The rails that it was given before.
    pub given: &'a [NicRail],
}

/// The rails of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Railed {
    /// Rail of each NIC, in the order of PCI addresses.
    pub rails: Vec<NicRail>,
    /// Rails of the NICs that are reported, and how many NICs each has.
    pub present: BTreeMap<u32, usize>,
    /// What is wrong.
    pub problem: Option<Problem>,
}

/// Rails of all nodes of a cluster, and its layouts afterwards. `ranges` are the rails that have an address range.
///
/// The largest machines come first: among nodes that are seen together, a complete one numbers the slots.
#[must_use]
pub fn resolve(
    rules: &[RailRule],
    ranges: &BTreeSet<u32>,
    known: &[RailLayout],
    sites: &[Site<'_>],
) -> (Vec<RailLayout>, BTreeMap<String, Railed>) {
    let mut layouts = Layouts::new(known);
    let mut parts: Vec<_> = sites.iter().map(|site| Parts::of(rules, site)).collect();
    parts.sort_by_key(|parts| (Reverse(parts.slots.len()), parts.node));
    let railed = parts.iter().map(|parts| {
        let railed = parts.railed(&mut layouts, ranges);
        (parts.node.to_owned(), railed)
    });
    let railed = railed.collect();
    (layouts.into_list(), railed)
}

/// What is known of a node before the map is asked.
struct Parts<'a> {
    node: &'a str,
    given: Rails,
    present: BTreeMap<PciAddress, &'a NicStatus>,
    ruled: Rails,
    slots: Slots,
}

impl<'a> Parts<'a> {
    fn of(rules: &[RailRule], site: &Site<'a>) -> Self {
        let given: Rails = site
            .given
            .iter()
            .filter_map(|one| Some((one.pci.parse().ok()?, one.rail)))
            .collect();
        let present: BTreeMap<PciAddress, &NicStatus> = site
            .nics
            .iter()
            .filter_map(|nic| Some((nic.pci.parse().ok()?, nic)))
            .collect();
        let decided = present
            .iter()
            .filter_map(|(pci, nic)| Some((*pci, by_rule(rules, nic, given.get(pci).copied())?)))
            .collect();
        let compute = present
            .iter()
            .filter(|(_, nic)| nic.role == NicRole::Compute);
        Self {
            node: site.node,
            slots: compute
                .map(|(pci, nic)| (*pci, nic.product.clone()))
                .collect(),
            given,
            present,
            ruled: decided,
        }
    }

    fn railed(&self, layouts: &mut Layouts, ranges: &BTreeSet<u32>) -> Railed {
        let (mapped, problem) = self.mapped(layouts);
        let mut rails = mapped;
        rails.extend(&self.ruled);
        let shared = self.shared(&rails, ranges);
        let mut present = BTreeMap::new();
        for rail in rails.values() {
            *present.entry(*rail).or_insert(0) += 1;
        }
        let absent = self
            .given
            .iter()
            .filter(|(pci, rail)| !self.present.contains_key(*pci) && !present.contains_key(*rail));
        let room = MOST.saturating_sub(rails.len());
        let absent: Vec<_> = absent.map(|(pci, rail)| (*pci, *rail)).take(room).collect();
        rails.extend(absent);
        Railed {
            rails: listed(&rails),
            present,
            problem: problem.or(shared),
        }
    }

    /// Rails by the map, of the NICs that no rule decides. Where the map has no answer, what was given stays.
    fn mapped(&self, layouts: &mut Layouts) -> (Rails, Option<Problem>) {
        let open = |pci: &PciAddress| self.slots.contains_key(pci) && !self.ruled.contains_key(pci);
        let given: Rails = self
            .given
            .iter()
            .filter(|(pci, _)| open(pci))
            .map(|(pci, rail)| (*pci, *rail))
            .collect();
        // Asked also where rules decide everything: without them the map is there, and not what they left behind.
        let asked = layouts.rails(&self.slots, &given);
        if !self.slots.keys().any(open) {
            return (Rails::new(), None);
        }
        match asked {
            Ok(mut rails) => {
                rails.retain(|pci, _| open(pci));
                (rails, None)
            }
            Err(problem) => (given, problem),
        }
    }

    /// Two NICs on one rail are what a rule may ask for. Where the map put one of them there, or the rail has addresses, of
    /// which each rail gets one, it is a mistake.
    fn shared(&self, rails: &Rails, ranges: &BTreeSet<u32>) -> Option<Problem> {
        let mut on: BTreeMap<u32, Vec<PciAddress>> = BTreeMap::new();
        for (pci, rail) in rails {
            on.entry(*rail).or_default().push(*pci);
        }
        let wrong = |rail: &u32, pcis: &[PciAddress]| {
            let mapped = pcis.iter().any(|pci| !self.ruled.contains_key(pci));
            pcis.len() > 1 && (mapped || ranges.contains(rail))
        };
        let (rail, pcis) = on.iter().find(|(rail, pcis)| wrong(rail, pcis))?;
        let names: Vec<_> = pcis.iter().map(|pci| self.name(*pci)).collect();
        let message = format!(
            "{} are all on rail {rail}: by fabric.rails each NIC needs a rail of its own. Write a rule for each of them",
            names.join(", ")
        );
        Some(Problem {
            reason: NodeReason::RailShared,
            message,
        })
    }

    fn name(&self, pci: PciAddress) -> String {
        let nic = self.present.get(&pci);
        let name = nic.and_then(|nic| nic.rdma.as_deref()).unwrap_or("NIC");
        format!("{name} ({pci})")
    }
}

/// The rail of the first rule that matches. Where only an unknown rate or link layer would tell, the NIC keeps its rail.
fn by_rule(rules: &[RailRule], nic: &NicStatus, given: Option<u32>) -> Option<u32> {
    if !matches!(nic.role, NicRole::Compute | NicRole::Storage) {
        return None;
    }
    let traits = nic.traits();
    rules.iter().find_map(|rule| {
        if rule.matches.matches(&traits) {
            return Some(rule.rail);
        }
        given.filter(|_| rule.matches.is_undecided(&traits))
    })
}

fn listed(rails: &Rails) -> Vec<NicRail> {
    let one = |(pci, rail): (&PciAddress, &u32)| NicRail {
        pci: pci.to_string(),
        rail: *rail,
    };
    rails.iter().map(one).collect()
}

#[cfg(test)]
pub(crate) mod tests;
