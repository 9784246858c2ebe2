//! Which node belongs to which cluster. Pure: the same clusters, nodes and present owners give the same answer.
//!
//! * The higher priority has the node. Between equals the present owner keeps it and both say Conflict; a node that
//!   nobody has goes to the older cluster, then by name.
//! * A cluster that is being deleted releases its nodes; one that makes no sense keeps those it has.
//! * Absence is not evidence: when a selector that has not changed suddenly matches far fewer nodes, or when no node
//!   is visible at all, the nodes stay where they are and the cluster says so.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::NodeFacts;
use crate::validate::{Cluster, Validated};

/// So many nodes may leave a cluster at once by their labels without being held.
const FEW: usize = 10;

/// Who has a node now, as its `GpuRdmaNode` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Present {
    /// The cluster that has it.
    pub cluster: String,
    /// Selector by which it came to that cluster ([`Cluster::selector_text`]); empty where unknown.
    pub selector: String,
}

/// Two clusters of equal priority that select the same node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tie {
    /// The node.
    pub node: String,
    /// The other cluster.
    pub with: String,
}

/// Who gets which node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignments {
    /// Node to cluster.
    pub owner: BTreeMap<String, String>,
    /// Cluster to the nodes that its selector takes, whoever has them.
    pub matched: BTreeMap<String, BTreeSet<String>>,
    /// Cluster to the nodes that it shares with an equal.
    pub ties: BTreeMap<String, BTreeSet<Tie>>,
    /// Cluster to the nodes that it keeps although its selector no longer takes them.
    pub held: BTreeMap<String, BTreeSet<String>>,
    /// Nodes that leave a cluster and go to no other, with the cluster that they leave.
    pub released: BTreeMap<String, String>,
}

impl Assignments {
    /// Nodes of a cluster.
    pub fn nodes_of<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a str> {
        self.owner
            .iter()
            .filter(move |(_, owner)| *owner == cluster)
            .map(|(node, _)| node.as_str())
    }

    /// Nodes that the selector takes and another cluster has.
    #[must_use]
    pub fn conflicting(&self, cluster: &str) -> usize {
        let elsewhere =
            |node: &&String| self.owner.get(*node).is_some_and(|owner| owner != cluster);
        self.matched
            .get(cluster)
            .map_or(0, |nodes| nodes.iter().filter(elsewhere).count())
    }
}

/// Assigns every node.
#[must_use]
pub fn assign(
    validated: &Validated,
    nodes: &BTreeMap<String, NodeFacts>,
    present: &BTreeMap<String, Present>,
) -> Assignments {
    let mut result = Assignments {
        matched: matched(validated, nodes),
        ..Assignments::default()
    };
    let frozen = validated.frozen();
    for name in nodes.keys() {
        let owner = match present.get(name) {
            Some(now) if frozen.contains(now.cluster.as_str()) => Some(now.cluster.clone()),
            now => elect(validated, &mut result, name, now),
        };
        result
            .owner
            .extend(owner.map(|owner| (name.clone(), owner)));
    }
    hold(validated, nodes, present, &mut result);
    release(nodes, present, &mut result);
    result
}

fn matched(
    validated: &Validated,
    nodes: &BTreeMap<String, NodeFacts>,
) -> BTreeMap<String, BTreeSet<String>> {
    let of = |cluster: &Cluster| {
        nodes
            .iter()
            .filter(|(_, node)| cluster.matches(node))
            .map(|(name, _)| name.clone())
            .collect()
    };
    validated
        .living()
        .map(|cluster| (cluster.name.clone(), of(cluster)))
        .collect()
}

/// The cluster that has a node, and the ties that are seen on the way.
fn elect(
    validated: &Validated,
    result: &mut Assignments,
    node: &str,
    present: Option<&Present>,
) -> Option<String> {
    let mut candidates: Vec<_> = validated
        .living()
        .filter(|cluster| {
            result
                .matched
                .get(&cluster.name)
                .is_some_and(|nodes| nodes.contains(node))
        })
        .collect();
    let highest = candidates.iter().map(|cluster| cluster.priority).max()?;
    candidates.retain(|cluster| cluster.priority == highest);
    note_ties(result, node, &candidates);
    let owns = |cluster: &&&Cluster| present.is_some_and(|now| now.cluster == cluster.name);
    let owner = candidates.iter().find(owns);
    let oldest = candidates
        .iter()
        .min_by_key(|cluster| (cluster.created, &cluster.name));
    owner.or(oldest).map(|cluster| cluster.name.clone())
}

fn note_ties(result: &mut Assignments, node: &str, equals: &[&Cluster]) {
    for cluster in equals {
        for other in equals.iter().filter(|other| other.name != cluster.name) {
            let tie = Tie {
                node: node.to_owned(),
                with: other.name.clone(),
            };
            result
                .ties
                .entry(cluster.name.clone())
                .or_default()
                .insert(tie);
        }
    }
}

/// Keeps nodes whose labels vanished in a crowd while the selector stayed the same: a feature-discovery outage looks
/// exactly so.
fn hold(
    validated: &Validated,
    nodes: &BTreeMap<String, NodeFacts>,
    present: &BTreeMap<String, Present>,
    result: &mut Assignments,
) {
    for cluster in validated.living() {
        let before: Vec<_> = present
            .iter()
            .filter(|(_, now)| now.cluster == cluster.name)
            .collect();
        let leaving: BTreeSet<String> = before
            .iter()
            .filter(|(name, now)| left_by_labels(cluster, name, now, nodes, result))
            .map(|(name, _)| (*name).clone())
            .collect();
        if leaving.len() >= FEW && leaving.len() * 2 > before.len() {
            result.owner.extend(
                leaving
                    .iter()
                    .map(|node| (node.clone(), cluster.name.clone())),
            );
            result.held.insert(cluster.name.clone(), leaving);
        }
    }
}

fn left_by_labels(
    cluster: &Cluster,
    name: &str,
    now: &Present,
    nodes: &BTreeMap<String, NodeFacts>,
    result: &Assignments,
) -> bool {
    let same_selector = now.selector == cluster.selector_text();
    same_selector && nodes.contains_key(name) && !result.owner.contains_key(name)
}

/// Nodes that nobody has any more. A node that is gone is not released: its `GpuRdmaNode` goes with its owner.
fn release(
    nodes: &BTreeMap<String, NodeFacts>,
    present: &BTreeMap<String, Present>,
    result: &mut Assignments,
) {
    for (name, now) in present {
        if nodes.contains_key(name) && !result.owner.contains_key(name) {
            result.released.insert(name.clone(), now.cluster.clone());
        }
    }
}

#[cfg(test)]
mod tests;
