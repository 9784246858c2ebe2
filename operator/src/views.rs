//! Nodes as the state machine of maintenance sees them. Pure.

use std::collections::BTreeSet;

use crds::names::{DRIVER_LABEL, RESET_ATTEMPTS};
use crds::node::{GpuRdmaNodeStatus, Phase};
use crds::{GpuRdmaNode, GpuRdmaNodeSpec};
use kube::ResourceExt;

use crate::components;
use crate::facts::{DriverPod, NodeFacts, PodFacts, driver_among};
use crate::gather::Snapshot;
use crate::rollout::{Driver, Holder, NodeView, Ready, Record, Unavailable};
use crate::validate::{Cluster, Validated};

/// Domain of resources whose pods use RDMA, whichever plugin advertises them.
pub const RDMA_DOMAIN: &str = "rdma/";

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

fn holders(pods: &[PodFacts], held: &BTreeSet<&str>) -> Vec<Holder> {
    let holds = |name: &String| held.contains(name.as_str()) || name.starts_with(RDMA_DOMAIN);
    pods.iter()
        .filter(|pod| pod.resources.iter().any(holds))
        .map(|pod| Holder {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            stays: pod.stays,
        })
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
        phase: status.map(|status| status.phase).unwrap_or_default(),
        ready: status.map(ready).unwrap_or_default(),
        version: version(object),
        tainted: facts.tainted,
        unavailable: unavailable(facts),
        holders: Vec::new(),
        record: Record::of(object),
        driver: Driver::NotOurs,
    }
}

fn ready(status: &GpuRdmaNodeStatus) -> Ready {
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == "Ready");
    found
        .map(|condition| Ready {
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        })
        .unwrap_or_default()
}

/// What a person can change to have a node tried again. What the operator gives is no part of it.
fn version(object: &GpuRdmaNode) -> String {
    let mut asked = GpuRdmaNodeSpec {
        maintenance: None,
        ..object.spec.clone()
    };
    asked.config.rails.clear();
    asked.config.addresses.clear();
    components::hash(&(asked, object.annotations().get(RESET_ATTEMPTS)))
}

const fn unavailable(facts: &NodeFacts) -> Option<Unavailable> {
    match (facts.not_ready, facts.cordoned) {
        (true, _) => Some(Unavailable::NotReady),
        (false, true) => Some(Unavailable::Cordoned),
        (false, false) => None,
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
    let object = snapshot.gpu_nodes.get(name);
    Some(NodeView {
        name: name.to_owned(),
        // Its agent has no say in what becomes of the driver pod.
        fresh: true,
        tainted: facts.tainted,
        unavailable: unavailable(facts),
        record: object.map(|object| Record::of(object)).unwrap_or_default(),
        holders: holders(snapshot.pods.get(name)?, &held),
        driver,
        ..NodeView::default()
    })
}

/// The same node with its driver pod left as it is.
#[must_use]
pub fn without_driver(node: NodeView) -> NodeView {
    NodeView {
        driver: Driver::NotOurs,
        ..node
    }
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
