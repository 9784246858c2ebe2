//! Nodes as the state machine of maintenance sees them. Pure.

use std::collections::BTreeSet;

use crds::GpuRdmaNode;
use crds::names::DRIVER_LABEL;
use crds::node::Phase;

use crate::facts::{DriverPod, NodeFacts, PodFacts, driver_among};
use crate::gather::Snapshot;
use crate::rollout::{Driver, NodeView};
use crate::validate::{Cluster, Validated};

/// Domain of resources whose pods use RDMA, whichever plugin advertises them.
const RDMA_DOMAIN: &str = "rdma/";

/// The nodes of a cluster that have a `GpuRdmaNode`, by name.
#[must_use]
pub fn views<'a>(
    snapshot: &Snapshot,
    validated: &Validated,
    cluster: &Cluster,
    template_hash: Option<&str>,
    nodes: impl Iterator<Item = &'a str>,
) -> Vec<NodeView> {
    let held = held_resources(validated);
    nodes
        .filter_map(|name| {
            let object = snapshot.gpu_nodes.get(name)?;
            let facts = snapshot.nodes.get(name)?;
            let pods = snapshot
                .pods
                .get(name)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let driver = driver(cluster, template_hash, object, facts, pods);
            Some(NodeView {
                holders: holders(pods, &held),
                driver,
                ..view(name, object, facts)
            })
        })
        .collect()
}

/// Resources of every cluster, not of this one alone: a pod may have come under an earlier configuration.
fn held_resources(validated: &Validated) -> BTreeSet<&str> {
    validated
        .clusters
        .iter()
        .flat_map(|cluster| &cluster.resources)
        .map(String::as_str)
        .collect()
}

fn holders(pods: &[PodFacts], held: &BTreeSet<&str>) -> Vec<String> {
    let holds = |name: &String| held.contains(name.as_str()) || name.starts_with(RDMA_DOMAIN);
    pods.iter()
        .filter(|pod| pod.resources.iter().any(holds))
        .map(PodFacts::id)
        .collect()
}

fn view(name: &str, object: &GpuRdmaNode, facts: &NodeFacts) -> NodeView {
    let status = object.status.as_ref();
    NodeView {
        name: name.to_owned(),
        install_hash: object.spec.install_hash.clone(),
        fresh: is_fresh(object),
        plan: status.and_then(|status| status.plan.clone()),
        grant: object.spec.maintenance.clone(),
        progress: status.and_then(|status| status.maintenance.clone()),
        tainted: facts.tainted,
        holders: Vec::new(),
        driver: Driver::NotOurs,
    }
}

/// Whether the agent's status is about the present generation.
#[must_use]
pub fn is_fresh(object: &GpuRdmaNode) -> bool {
    let observed = object
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    observed.is_some() && observed == object.metadata.generation
}

fn driver(
    cluster: &Cluster,
    template_hash: Option<&str>,
    object: &GpuRdmaNode,
    facts: &NodeFacts,
    pods: &[PodFacts],
) -> Driver {
    let pod = driver_among(pods);
    let label = facts.labels.get(DRIVER_LABEL);
    match (label, pod) {
        (None, None) if cluster.driver.is_some() && is_applicable(object) => Driver::Missing,
        (None, None) => Driver::NotOurs,
        (None, Some((pod, driver))) => unplaced(pod, driver),
        (Some(_), _) if cluster.driver.is_none() => Driver::Unwanted,
        // The other cluster's driver leaves before this one's comes.
        (Some(label), Some(_)) if *label != cluster.name => Driver::Unwanted,
        (Some(label), None) if *label != cluster.name => Driver::Missing,
        (Some(_), Some((pod, driver))) if !driver.deleting => placed(pod, driver, template_hash),
        (Some(_), _) => Driver::Starting,
    }
}

/// The driver of a pod on a node without the driver's label: on its way out, or forgotten.
fn unplaced(pod: &PodFacts, driver: &DriverPod) -> Driver {
    if driver.deleting {
        return Driver::Starting;
    }
    Driver::Leftover {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
    }
}

/// A node that nobody has any more and that still has a driver pod.
#[must_use]
pub fn leaving(snapshot: &Snapshot, validated: &Validated, name: &str) -> Option<NodeView> {
    let facts = snapshot.nodes.get(name)?;
    let (pod, driver) = snapshot.driver_on(name)?;
    let driver = if facts.labels.contains_key(DRIVER_LABEL) {
        Driver::Unwanted
    } else {
        unplaced(pod, driver)
    };
    let held = held_resources(validated);
    Some(NodeView {
        name: name.to_owned(),
        tainted: facts.tainted,
        holders: holders(snapshot.pods.get(name)?, &held),
        driver,
        ..NodeView::default()
    })
}

/// The driver of a pod that stays.
fn placed(pod: &PodFacts, driver: &DriverPod, template_hash: Option<&str>) -> Driver {
    if template_hash != Some(&driver.template_hash) {
        return Driver::Outdated {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
        };
    }
    if driver.ready {
        Driver::Current
    } else {
        Driver::Starting
    }
}

/// Whether the agent has reported a machine that driver and plugin are for. No report is not yet a yes.
#[must_use]
pub fn is_applicable(object: &GpuRdmaNode) -> bool {
    let phase = object.status.as_ref().map(|status| status.phase);
    !matches!(phase, None | Some(Phase::Pending | Phase::NotApplicable))
}

#[cfg(test)]
mod tests;
