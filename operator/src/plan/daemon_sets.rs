//! Which DaemonSets to apply and which to delete. Pure. Deleting one stops its pods on every node at once, so each
//! deletion needs a positive reason: absence alone never is.

use crds::cluster::Mode;
use crds::names::{DRIVER_LABEL, PLUGIN_LABEL};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::NodeSelectorTerm;
use kube::ResourceExt;
use serde_json::Value;

use super::{Changes, restore};
use crate::components::{AGENT, APPLIED_HASH, PLUGIN, affinity};
use crate::gather::Snapshot;
use crate::quantity;
use crate::validate::{Cluster, Validated};

/// A DaemonSet to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prune {
    /// Its name.
    pub name: String,
    /// Whether its pods stay: a driver must not be unloaded on all nodes at once.
    pub keep_pods: bool,
}

/// The plugin comes with the first cluster that enforces and stays while there is a cluster: without labelled nodes it has
/// no pods. A DaemonSet that is deleted and soon made again under its name waits up to five minutes for its pods, because
/// the controller-manager still expects the end of the old ones (`pkg/controller/controller_utils.go`,
/// `ExpectationsTimeout`).
pub(super) fn plugin_wanted(snapshot: &Snapshot, living: &[&Cluster]) -> bool {
    let enforced = living.iter().any(|cluster| cluster.mode == Mode::Enforce);
    let labelled = || {
        snapshot
            .nodes
            .values()
            .any(|node| node.labels.contains_key(PLUGIN_LABEL))
    };
    let exists = snapshot.daemon_sets.contains_key(PLUGIN);
    !living.is_empty() && (enforced || exists || labelled())
}

/// Nodes that the agent keeps: a cluster that makes no sense lends no selector, and its nodes must not lose their
/// agent for it. They go once every cluster makes sense again. And those of a deleted cluster whose agents have not
/// ended their work yet.
pub(super) fn kept(snapshot: &Snapshot, validated: &Validated) -> Vec<NodeSelectorTerm> {
    let agent = snapshot.daemon_sets.get(AGENT);
    let agent = agent.filter(|_| !validated.invalid.is_empty());
    let as_now = agent
        .map(|agent| affinity::terms(agent))
        .unwrap_or_default();
    let lingering = validated
        .clusters
        .iter()
        .filter(|cluster| cluster.deleting && restore::lingers(snapshot, cluster))
        .map(|cluster| affinity::term(&cluster.label_selector));
    as_now.iter().cloned().chain(lingering).collect()
}

pub(super) fn diff(
    snapshot: &Snapshot,
    validated: &Validated,
    desired: &[DaemonSet],
    changes: &mut Changes,
) {
    let incomplete = !validated.invalid.is_empty() || !snapshot.skipped.is_empty();
    for set in desired {
        let name = set.name_any();
        let existing = snapshot.daemon_sets.get(&name);
        if existing.is_none_or(|existing| drifted(existing, set)) {
            changes.daemon_sets.push(set.clone());
        }
    }
    let wanted = |name: &str| desired.iter().any(|set| set.name_any() == name);
    for (name, set) in &snapshot.daemon_sets {
        if !incomplete && !wanted(name) && set.metadata.deletion_timestamp.is_none() {
            changes.prune.extend(prune(snapshot, validated, name, set));
        }
    }
}

fn prune(snapshot: &Snapshot, validated: &Validated, name: &str, set: &DaemonSet) -> Option<Prune> {
    let Some(cluster) = set.labels().get(DRIVER_LABEL) else {
        let known = [AGENT, PLUGIN].contains(&name);
        return known.then(|| Prune {
            name: name.to_owned(),
            keep_pods: false,
        });
    };
    let stays = validated.living().any(|living| living.name == *cluster);
    let in_use = snapshot
        .nodes
        .values()
        .any(|node| node.labels.get(DRIVER_LABEL) == Some(cluster));
    // A cluster that stays gives its nodes back one grant at a time; only then its DaemonSet goes.
    (!stays || !in_use).then(|| Prune {
        name: name.to_owned(),
        keep_pods: !stays,
    })
}

/// Whether a DaemonSet is not what was applied last, or was edited since.
fn drifted(existing: &DaemonSet, desired: &DaemonSet) -> bool {
    let applied = |set: &DaemonSet| set.annotations().get(APPLIED_HASH).cloned();
    let json = |set: &DaemonSet| serde_json::to_value(&set.spec).unwrap_or_default();
    applied(existing) != applied(desired) || !covers(&json(existing), &json(desired))
}

/// Whether `actual` has everything that `desired` has; defaults that the server filled in are no difference, nor is
/// what it writes otherwise.
fn covers(actual: &Value, desired: &Value) -> bool {
    match (actual, desired) {
        (Value::Object(actual), Value::Object(desired)) => {
            desired
                .iter()
                .all(|(key, desired)| match (key.as_str(), actual.get(key)) {
                    ("limits" | "requests", Some(actual)) => same_amounts(actual, desired),
                    // The server leaves an empty value out.
                    ("value", None) => desired == "",
                    (_, actual) => actual.is_some_and(|actual| covers(actual, desired)),
                })
        }
        (Value::Array(actual), Value::Array(desired)) => {
            actual.len() == desired.len()
                && actual
                    .iter()
                    .zip(desired)
                    .all(|(actual, desired)| covers(actual, desired))
        }
        (actual, desired) => actual == desired,
    }
}

/// The server writes 0.5 as 500m, and 1024Mi as 1Gi.
fn same_amounts(actual: &Value, desired: &Value) -> bool {
    let amount = |value: &Value| value.as_str().and_then(quantity::billionths);
    let same = |actual: &Value, desired: &Value| {
        actual == desired || (amount(actual).is_some() && amount(actual) == amount(desired))
    };
    let (Some(actual), Some(desired)) = (actual.as_object(), desired.as_object()) else {
        return actual == desired;
    };
    desired
        .iter()
        .all(|(name, desired)| actual.get(name).is_some_and(|actual| same(actual, desired)))
}

#[cfg(test)]
mod tests;
