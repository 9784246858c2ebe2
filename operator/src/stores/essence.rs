//! What of each kind matters to a reconciliation, as a hash. Pure. No essence: the object does not matter at all.

#![expect(
    clippy::unnecessary_wraps,
    reason = "one shape for every kind; only pods can be without"
)]

use std::hash::{DefaultHasher, Hash, Hasher};

use crds::{GpuRdmaCluster, GpuRdmaNode};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Resource, ResourceExt};

use crate::components::APPLIED_HASH;
use crate::facts::{NodeFacts, PodFacts};
use crate::guarded::Guarded;

fn hashed(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A cluster's own status is written here: it must not ring the bell.
pub(super) fn cluster(cluster: &Guarded<GpuRdmaCluster>) -> Option<u64> {
    let meta = cluster.meta();
    Some(hashed(&(
        &meta.uid,
        meta.generation,
        &meta.finalizers,
        meta.deletion_timestamp.is_some(),
        cluster.read().is_ok(),
    )))
}

pub(super) fn node(node: &Node) -> Option<u64> {
    Some(hashed(&NodeFacts::of(node)))
}

pub(super) fn gpu_node(node: &Guarded<GpuRdmaNode>) -> Option<u64> {
    Some(hashed(&node.meta().resource_version))
}

pub(super) fn pod(pod: &Pod) -> Option<u64> {
    let facts = PodFacts::of(pod)?;
    facts.is_relevant().then(|| hashed(&facts))
}

pub(super) fn daemon_set(set: &DaemonSet) -> Option<u64> {
    let meta = &set.metadata;
    let applied = set.annotations().get(APPLIED_HASH);
    Some(hashed(&(
        meta.generation,
        applied,
        meta.deletion_timestamp.is_some(),
    )))
}
