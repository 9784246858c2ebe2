//! Network interfaces, addresses, routes, `DCB`, `RoCE` and `IPoIB` settings, who owns them, and what the node itself depends on.
//!
//! What only the running kernel knows is asked of the field's tools ([`ask`]), everything else is read below the root.
//! Called by [`super::facts`] with [`Depth::Full`], by the node agent each turn with as much as it needs.

mod ask;
mod dcb;
mod depends;
mod links;
mod owners;
mod rdma;
mod routes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::machine::{LinkLayer, Machine, Nic};

pub(crate) use ask::UNSUPPORTED;
pub use ask::is_live;
pub use dcb::{Dcb, Ets, dcb};
pub use depends::{ApiServer, Connection, Depends, Peer};
pub use links::{Address, Child, Link, links};
pub use owners::{Manager, Owner};
pub use rdma::{CONFIGFS, Ecn, Fec, PortSettings, ecn, port};
pub use routes::{Route, Rule};

use super::Sourced;
use crate::root::Root;

/// The network of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Every interface by name, with its addresses.
    pub links: Sourced<BTreeMap<String, Link>>,
    /// Routes of all tables.
    pub routes: Sourced<Vec<Route>>,
    /// Routing rules.
    pub rules: Sourced<Vec<Rule>>,
    /// Settings of the RDMA devices' interfaces, by name.
    pub interfaces: BTreeMap<String, Interface>,
    /// Settings of the RDMA devices' ports, by device and port.
    pub ports: BTreeMap<String, BTreeMap<u32, PortSettings>>,
    /// What the node itself depends on.
    pub depends: Depends,
}

/// Settings of an RDMA device's interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Priorities, traffic classes, flow control; of Ethernet interfaces only.
    pub dcb: Option<Dcb>,
    /// Congestion notification, of out-of-tree drivers only.
    pub ecn: Option<Ecn>,
    /// Forward error correction; of Ethernet interfaces only.
    pub fec: Option<Sourced<Fec>>,
    /// Who else sets addresses and MTU here.
    pub owners: Vec<Owner>,
}

/// How much is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What tells which interfaces the node depends on: three short programs and a few files.
    #[default]
    Reach,
    /// Everything.
    Full,
}

/// Reads the network of the machine below `root`.
#[must_use]
pub fn network(root: &Root, machine: &Machine, depth: Depth) -> Network {
    let links = links::links(root);
    let reach = Network {
        depends: depends::depends(root),
        routes: routes::routes(root),
        links,
        ..Network::default()
    };
    if depth == Depth::Reach {
        return reach;
    }
    Network {
        rules: routes::rules(root),
        interfaces: interfaces(root, machine, &reach.links),
        ports: rdma::ports(root, machine),
        ..reach
    }
}

/// What is asked of the machine as a whole, in the order in which a capture records it.
pub(crate) fn questions() -> Vec<ask::Question<'static>> {
    let mut questions = vec![links::question()];
    questions.extend(["-4", "-6"].map(routes::question));
    questions.extend(["-4", "-6"].map(routes::rule_question));
    questions
}

/// What is asked of an Ethernet interface of an RDMA device.
pub(crate) fn questions_of(name: &str) -> Vec<ask::Question<'_>> {
    let dcb = dcb::OBJECTS.map(|object| dcb::question(object, name));
    let mut questions = Vec::from(dcb);
    questions.push(rdma::fec_question(name));
    questions
}

/// Whether [`questions_of`] are asked of the interfaces of an RDMA device.
pub(crate) fn is_ethernet(nic: &Nic) -> bool {
    let mut ports = nic.ports.iter();
    ports.any(|port| port.link_layer.known() == Some(&LinkLayer::Ethernet))
}

fn interfaces(
    root: &Root,
    machine: &Machine,
    links: &Sourced<BTreeMap<String, Link>>,
) -> BTreeMap<String, Interface> {
    let names = machine.nics.iter().flat_map(|nic| {
        let ethernet = is_ethernet(nic);
        nic.netdevs.iter().map(move |name| (name, ethernet))
    });
    let read = names.map(|(name, ethernet)| {
        let index = links.fact.known().and_then(|links| links.get(name));
        let interface = Interface {
            dcb: ethernet.then(|| dcb::dcb(root, name)),
            ecn: ethernet.then(|| rdma::ecn(root, name)),
            fec: ethernet.then(|| rdma::fec(root, name)),
            owners: owners::owners(root, name, index.map(|link| link.index)),
        };
        (name.clone(), interface)
    });
    read.collect()
}

#[cfg(test)]
mod tests;
