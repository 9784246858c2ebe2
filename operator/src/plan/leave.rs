//! Nodes that left a cluster for nobody, and nodes that nobody has but that still wear something of ours. Pure.
//!
//! A driver pod is never taken from a node at once: without the driver's label its DaemonSet would end it under running
//! pods, on every such node together. While its cluster enforces, the rollout takes it away, one slot at a time; else
//! label and pod stay, so that the DaemonSet, or one that is made again, still knows it.

use std::collections::BTreeMap;

use crds::cluster::Mode;
use crds::names::{DRIVER_LABEL, PLUGIN_LABEL};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{Changes, LabelChange, World, restore, takeover_view};
use crate::facts::NodeFacts;
use crate::gather::Snapshot;
use crate::rollout::{Decision, End, NodeView, Record, State, Step};
use crate::takeover;
use crate::validate::{Cluster, Validated};
use crate::views;

/// How long a node that leaves is kept for its agent to confirm that nothing runs any more.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn clean(world: &World<'_>, name: &str, changes: &mut Changes) {
    let World {
        snapshot,
        validated,
        assignments,
        ..
    } = *world;
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
        // Before the node is forgotten: its object tells whether its GPUs are given back.
        let cluster = left.and_then(|cluster| validated.get(cluster));
        let wanted = cluster.map(|cluster| cluster.config.device_plugin.give_back);
        let view = takeover_view(snapshot, node);
        let step = view.and_then(|view| takeover::leaving(&view, wanted));
        if let Some(step) = step {
            changes.note(node, step);
            continue;
        }
        if drained_by(snapshot, validated, node).is_some() || restore::is_held(world, node) {
            continue;
        }
        if let Some(decision) = grant_taken_back(world, node) {
            changes.maintenance.push(decision);
            continue;
        }
        changes.untaint.extend(facts.tainted.then(|| node.clone()));
        changes.forget.extend(left.map(|_| node.clone()));
    }
}

/// A node leaves with a grant: it is taken back first, and the node is kept until its agent has confirmed that nothing
/// runs any more, or for a while where it does not answer.
fn grant_taken_back(world: &World<'_>, node: &str) -> Option<Decision> {
    let object = world.snapshot.gpu_nodes.get(node)?;
    let record = Record::of(object);
    let now = Timestamp::from_second(world.now.as_second()).unwrap_or(world.now);
    if object.spec.maintenance.is_some() {
        return Some(Decision {
            node: node.to_owned(),
            record: Some(Record {
                revoked: Some(now),
                ..record
            }),
            steps: vec![Step::EndGrant(End::Released)],
            state: State::WaitingForAgent(String::new()),
            wake: now.checked_add(PATIENCE).ok(),
        });
    }
    let until = record.revoked?.checked_add(PATIENCE).ok()?;
    let waits = now < until && !views::is_fresh(object);
    waits.then(|| Decision {
        node: node.to_owned(),
        state: State::WaitingForAgent(String::new()),
        wake: Some(until),
        ..Decision::default()
    })
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
pub(super) fn draining(world: &World<'_>, cluster: &Cluster) -> Vec<NodeView> {
    let World {
        snapshot,
        validated,
        assignments,
        ..
    } = *world;
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
