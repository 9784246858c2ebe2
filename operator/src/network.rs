//! Rails and addresses of one cluster's nodes, from what the agents report and what was given before. Pure;
//! [`crate::plan`] calls it, [`crate::status`] says what is wrong.
//!
//! No two nodes get one address, of whichever cluster they are:
//! * One leader decides, and its controller works on one cluster at a time ([`crate::run`]).
//! * What it decided and the caches do not show yet counts as given: [`crate::ledger`] lays it over every snapshot. It is
//!   noted before it is written, so that a write whose answer was lost counts too.
//! * Everything that any `GpuRdmaNode` has been given is taken, and so are the addresses of the Nodes and those that agents
//!   report as in use.
//!
//! The state itself is in the objects: a new leader reads rails and addresses from the `GpuRdmaNodes` and the layouts from
//! the cluster's status. Where that status is lost, the rails that nodes have number the layouts again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use crds::GpuRdmaNode;
use crds::cluster::RailLayout;
use crds::node::{NicRail, NodeAddress};
use ipnet::IpNet;
use kube::ResourceExt;

use crate::addresses::{self, Allotted, Ask};
use crate::gather::Snapshot;
use crate::rails::{self, Problem, Railed, Site};
use crate::validate::Cluster;
use crate::views;

/// What the operator gives to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Rails of its NICs.
    pub rails: Vec<NicRail>,
    /// Its addresses.
    pub addresses: Vec<NodeAddress>,
}

impl Given {
    /// What the object says.
    #[must_use]
    pub fn of(object: &GpuRdmaNode) -> Self {
        Self {
            rails: object.spec.config.rails.clone(),
            addresses: object.spec.config.addresses.clone(),
        }
    }
}

/// Rails and addresses of a cluster's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Hardware layouts.
    pub layouts: Vec<RailLayout>,
    /// By node.
    pub given: BTreeMap<String, Given>,
    /// What is wrong, by node.
    pub problems: BTreeMap<String, Problem>,
}

/// Rails and addresses of the cluster's nodes.
#[must_use]
pub fn network(snapshot: &Snapshot, cluster: &Cluster, members: &[&str]) -> Network {
    let given: BTreeMap<&str, Given> = members
        .iter()
        .map(|node| (*node, snapshot.given(node)))
        .collect();
    let sites: Vec<_> = given
        .iter()
        .map(|(node, given)| Site {
            node,
            nics: nics(snapshot, node),
            given: &given.rails,
        })
        .collect();
    let ranges: BTreeSet<u32> = cluster.ranges.keys().copied().collect();
    let rules = &cluster.config.fabric.rails;
    let known = snapshot.layouts(&cluster.name);
    let (layouts, mut railed) = rails::resolve(rules, &ranges, &known, &sites);
    let mut allotted = allot(snapshot, cluster, &given, &railed);
    let mut network = Network {
        layouts,
        problems: allotted.problems,
        ..Network::default()
    };
    for node in given.keys() {
        let Railed { rails, problem, .. } = railed.remove(*node).unwrap_or_default();
        let addresses = allotted.addresses.remove(*node).unwrap_or_default();
        network
            .given
            .insert((*node).to_owned(), Given { rails, addresses });
        network
            .problems
            .extend(problem.map(|problem| ((*node).to_owned(), problem)));
    }
    network
}

fn nics<'a>(snapshot: &'a Snapshot, node: &str) -> &'a [crds::node::NicStatus] {
    let object = snapshot.own_object(node);
    let status = object.and_then(|object| object.status.as_ref());
    status
        .map(|status| status.nics.as_slice())
        .unwrap_or_default()
}

fn allot(
    snapshot: &Snapshot,
    cluster: &Cluster,
    given: &BTreeMap<&str, Given>,
    railed: &BTreeMap<String, Railed>,
) -> Allotted {
    if cluster.ranges.is_empty() {
        return Allotted::default();
    }
    let asks = given
        .iter()
        .flat_map(|(node, given)| asks(snapshot, cluster, node, given, railed.get(*node)));
    let leaving = given.values().flat_map(hosts).collect();
    addresses::allot(
        &cluster.ranges,
        &foreign(snapshot, given),
        &leaving,
        asks.collect(),
    )
}

/// What a node asks for: an address on each rail on which it has one NIC, and no new one for a NIC that is not there.
fn asks<'a>(
    snapshot: &Snapshot,
    cluster: &Cluster,
    node: &'a str,
    given: &Given,
    railed: Option<&Railed>,
) -> Vec<Ask<'a>> {
    let Some(railed) = railed else {
        return Vec::new();
    };
    let looked = snapshot
        .own_object(node)
        .is_some_and(|object| has_looked(object, cluster));
    let has = |rail: u32| given.addresses.iter().find(|one| one.rail == rail);
    let rails: BTreeSet<u32> = railed.rails.iter().map(|one| one.rail).collect();
    let ask = |rail: u32| {
        let nics = railed.present.get(&rail).copied().unwrap_or_default();
        (nics < 2).then(|| Ask {
            node,
            rail,
            given: has(rail).and_then(|one| one.address.parse().ok()),
            may_take: nics == 1 && looked,
        })
    };
    rails.into_iter().filter_map(ask).collect()
}

/// Whether the agent has reported with these ranges before it: what is in use there is known.
fn has_looked(object: &GpuRdmaNode, cluster: &Cluster) -> bool {
    let asked = &object.spec.config.fabric.addresses;
    views::is_fresh(object) && *asked == cluster.config.fabric.addresses
}

fn hosts(given: &Given) -> impl Iterator<Item = IpAddr> {
    given
        .addresses
        .iter()
        .filter_map(|one| Some(one.address.parse::<IpNet>().ok()?.addr()))
}

/// Addresses that no node of the cluster may have: of nodes that are not among `members`, of the Nodes themselves, and in
/// use by someone.
fn foreign(snapshot: &Snapshot, members: &BTreeMap<&str, Given>) -> HashSet<IpAddr> {
    let mut foreign: HashSet<IpAddr> = snapshot
        .nodes
        .values()
        .flat_map(|facts| facts.addresses.iter().copied())
        .collect();
    for object in snapshot.gpu_nodes.values() {
        let reported = object
            .status
            .iter()
            .flat_map(|status| &status.addresses_in_use);
        foreign.extend(reported.filter_map(|one| one.parse::<IpAddr>().ok()));
        if !members.contains_key(object.name_any().as_str()) {
            foreign.extend(hosts(&Given::of(object)));
        }
    }
    for (node, given) in &snapshot.pending.given {
        if !members.contains_key(node.as_str()) {
            foreign.extend(hosts(&given.given));
        }
    }
    foreign
}

#[cfg(test)]
mod tests;
