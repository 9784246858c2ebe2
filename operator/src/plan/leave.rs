//! Nodes that left a cluster for nobody, and nodes that nobody has but that still wear something of ours. Pure.
//!
//! A driver pod is never taken from a node at once: without the driver's label its DaemonSet would end it under running
//! pods, on every such node together. While its cluster enforces, the rollout takes it away, one slot at a time; else
//! label and pod stay, so that the DaemonSet, or one that is made again, still knows it.

use std::collections::BTreeMap;

use crds::cluster::Mode;
use crds::names::{DRIVER_LABEL, PLUGIN_LABEL};
use kube::ResourceExt;

use super::{Changes, LabelChange};
use crate::assign::Assignments;
use crate::facts::NodeFacts;
use crate::gather::Snapshot;
use crate::rollout::NodeView;
use crate::validate::{Cluster, Validated};
use crate::views;

pub(super) fn clean(
    snapshot: &Snapshot,
    validated: &Validated,
    assignments: &Assignments,
    name: &str,
    changes: &mut Changes,
) {
    for (node, facts) in &snapshot.nodes {
        let left = assignments.released.get(node);
        let handled_elsewhere =
            left.is_some_and(|cluster| cluster != name && exists(snapshot, cluster));
        if assignments.owner.contains_key(node) || handled_elsewhere {
            continue;
        }
        let labels = worn(facts, snapshot.driver_on(node).is_some());
        if !labels.is_empty() {
            changes.labels.push(LabelChange {
                node: node.clone(),
                labels,
            });
        }
        if drained_by(snapshot, validated, node).is_none() {
            changes.untaint.extend(facts.tainted.then(|| node.clone()));
            changes.forget.extend(left.map(|_| node.clone()));
        }
    }
}

/// Our labels that go at once.
fn worn(facts: &NodeFacts, has_driver: bool) -> BTreeMap<&'static str, Option<String>> {
    let ours = [PLUGIN_LABEL, DRIVER_LABEL]
        .into_iter()
        .filter(|label| facts.labels.contains_key(*label))
        .filter(|label| !(has_driver && *label == DRIVER_LABEL));
    ours.map(|label| (label, None)).collect()
}

/// Nodes that nobody has and whose driver is this cluster's to take away.
pub(super) fn draining(
    snapshot: &Snapshot,
    validated: &Validated,
    assignments: &Assignments,
    cluster: &Cluster,
) -> Vec<NodeView> {
    let nodes = snapshot.nodes.keys();
    nodes
        .filter(|node| !assignments.owner.contains_key(*node))
        .filter(|node| {
            drained_by(snapshot, validated, node).is_some_and(|by| by.name == cluster.name)
        })
        .filter_map(|node| views::leaving(snapshot, validated, node))
        .collect()
}

/// The cluster whose rollout takes the driver pod from a node that nobody has.
fn drained_by<'a>(
    snapshot: &Snapshot,
    validated: &'a Validated,
    node: &str,
) -> Option<&'a Cluster> {
    let (_, driver) = snapshot.driver_on(node)?;
    validated.living().find(|cluster| {
        cluster.name == driver.cluster && cluster.mode == Mode::Enforce && !cluster.paused
    })
}

fn exists(snapshot: &Snapshot, cluster: &str) -> bool {
    snapshot
        .clusters
        .iter()
        .any(|object| object.name_any() == cluster)
}

#[cfg(test)]
mod tests;
