//! Interfaces that the node itself depends on: nothing changes them unless the cluster's `nics` name them. Pure;
//! [`crate::decide`] gives such NICs the role Management, [`crate::planner`] plans nothing for them.
//!
//! Evidence names an interface; it holds for everything below it as well: the ports of a bond or bridge, what a VLAN or
//! macvlan lies on, the ports of an Open vSwitch, and the physical function of a virtual one. What cannot be read
//! protects everything, and proves nothing about anybody's role.

mod evidence;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use host::facts::network::{Link, Network};
use topology::fact::Fact;
use topology::machine::{Machine, Nic};
use topology::pci::PciAddress;

/// The rule by which an interface is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// It has one of the node's addresses.
    NodeAddress,
    /// The kubelet talks with an API server over it.
    KubeletConnection,
    /// The route to an API server leads over it.
    ApiServer,
    /// A default route leads over it.
    DefaultRoute,
    /// Something is mounted from a machine that is reached over it.
    Peer,
}

/// Why an interface is protected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// The rule.
    pub rule: Rule,
    /// What was seen.
    pub seen: String,
    /// Whether it makes the interface the node's own: routes of other tables than the main one, those of router
    /// advertisements and storage are usual on rails too.
    pub own: bool,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = match self.rule {
            Rule::NodeAddress => "has the node's address",
            Rule::KubeletConnection => "carries the kubelet's connection",
            Rule::ApiServer => "is the way to the API server",
            Rule::DefaultRoute => "carries a default route",
            Rule::Peer => "is the way to a mounted",
        };
        write!(f, "{rule}: {}", self.seen)
    }
}

/// Which interfaces and functions are protected, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protected {
    netdevs: BTreeMap<String, BTreeSet<Reason>>,
    functions: BTreeMap<PciAddress, BTreeSet<Reason>>,
    unknown: Option<String>,
}

/// What of `machine` the node depends on. `node_addresses` are those of the Node object.
#[must_use]
pub fn protected(
    network: &Network,
    machine: &Machine,
    node_addresses: &BTreeSet<IpAddr>,
) -> Protected {
    let mut protected = Protected::default();
    let links = match &network.links.fact {
        Fact::Known(links) => links,
        Fact::Absent => return unknown("no interfaces were found"),
        Fact::Unreadable(why) => return unknown(why),
    };
    let (found, unread) = evidence::evidence(network, links, node_addresses);
    for (name, reason) in found {
        for below in below(links, &name) {
            protected
                .netdevs
                .entry(below)
                .or_default()
                .insert(reason.clone());
        }
    }
    protected.unknown = unread;
    protected.functions = functions(&protected.netdevs, links, machine);
    protected
}

fn unknown(why: &str) -> Protected {
    Protected {
        unknown: Some(why.to_owned()),
        ..Protected::default()
    }
}

/// The interface and everything that it lies on.
fn below(links: &BTreeMap<String, Link>, top: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::from([top.to_owned()]);
    let mut open = vec![top.to_owned()];
    while let Some(name) = open.pop() {
        let lowers = links
            .iter()
            .filter(|(lower, link)| lies_on(links, &name, lower, link));
        for (lower, _) in lowers {
            if found.insert(lower.clone()) {
                open.push(lower.clone());
            }
        }
    }
    found
}

/// Whether `upper` lies on `lower`. Ports of an Open vSwitch have its datapath as master, the interfaces with the addresses
/// are others of its kind.
fn lies_on(links: &BTreeMap<String, Link>, upper: &str, lower: &str, link: &Link) -> bool {
    let is_switch =
        |name: &str| links.get(name).and_then(|link| link.kind.as_deref()) == Some("openvswitch");
    let above = links.get(upper).and_then(|link| link.lower.as_deref());
    link.master.as_deref() == Some(upper)
        || link.uppers.contains(upper)
        || above == Some(lower)
        || (is_switch(upper) && link.master.as_deref().is_some_and(is_switch))
}

/// The functions behind protected interfaces; of a virtual one the physical one too.
fn functions(
    netdevs: &BTreeMap<String, BTreeSet<Reason>>,
    links: &BTreeMap<String, Link>,
    machine: &Machine,
) -> BTreeMap<PciAddress, BTreeSet<Reason>> {
    let mut functions: BTreeMap<PciAddress, BTreeSet<Reason>> = BTreeMap::new();
    for (name, reasons) in netdevs {
        let nics = machine.nics.iter().filter(|nic| nic.netdevs.contains(name));
        let by_machine = nics.filter_map(|nic| nic.pci);
        let by_link = links.get(name).and_then(|link| link.pci);
        for pci in by_machine.chain(by_link) {
            let physical = machine.nics.iter().find(|nic| nic.pci == Some(pci));
            let physical = physical.and_then(|nic| nic.physfn);
            for function in [Some(pci), physical].into_iter().flatten() {
                let entry = functions.entry(function).or_default();
                entry.extend(reasons.iter().cloned());
            }
        }
    }
    functions
}

impl Protected {
    /// Why nothing may be changed at `nic`; `None`: the node does not depend on it.
    #[must_use]
    pub fn why(&self, nic: &Nic) -> Option<String> {
        if let Some(reason) = self.reasons(nic).next() {
            return Some(reason.to_string());
        }
        let unknown = self.unknown.as_ref()?;
        Some(format!(
            "may be one that the node depends on: that could not be read: {unknown}"
        ))
    }

    /// The proof that `nic` is the node's own. Not knowing is none.
    #[must_use]
    pub fn own(&self, nic: &Nic) -> Option<&Reason> {
        self.reasons(nic).find(|reason| reason.own)
    }

    fn reasons(&self, nic: &Nic) -> impl Iterator<Item = &Reason> {
        let by_function = nic.pci.and_then(|pci| self.functions.get(&pci));
        let by_name = nic.netdevs.iter().filter_map(|name| self.netdevs.get(name));
        by_function.into_iter().chain(by_name).flatten()
    }
}

#[cfg(test)]
mod tests;
