//! First step: what the caches hold, as one consistent value. Everything after it is pure until [`crate::apply`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::cluster::RailLayout;
use crds::{GpuRdmaCluster, GpuRdmaNode};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Resource, ResourceExt};

use crate::assign::Present;
use crate::error::Error;
use crate::facts::{DriverPod, NodeFacts, PodFacts, driver_among};
use crate::guarded::Guarded;
use crate::ledger::Pending;
use crate::network::Given;
use crate::stores::Stores;
use crate::validate::{Validated, validate};

/// Annotation of a `GpuRdmaNode`: the selector by which the node came to its cluster.
pub const SELECTOR_ANNOTATION: &str = "gpurdma.dev/selected-by";

/// The world as the caches show it.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// All clusters.
    pub clusters: Vec<Arc<GpuRdmaCluster>>,
    /// Clusters whose stored object cannot be read, by name, with the reason.
    pub unreadable: BTreeMap<String, String>,
    /// All nodes but the skipped ones, by name.
    pub nodes: BTreeMap<String, NodeFacts>,
    /// All `GpuRdmaNodes`, by name.
    pub gpu_nodes: BTreeMap<String, Arc<GpuRdmaNode>>,
    /// Nodes that are left as they are: their `GpuRdmaNode` cannot be read.
    pub skipped: BTreeSet<String>,
    /// Pods that ask for devices or are drivers or device plugins of ours, by node.
    pub pods: BTreeMap<String, Vec<PodFacts>>,
    /// DaemonSets of the operator, by name.
    pub daemon_sets: BTreeMap<String, Arc<DaemonSet>>,
    /// What was decided and is in none of the objects above yet.
    pub pending: Pending,
}

/// Reads the caches, once they are filled. The namespace is the operator's.
pub fn gather(stores: &Stores, namespace: &str) -> Result<Snapshot, Error> {
    if !stores.ready() {
        return Err(Error::NotSynced);
    }
    let (clusters, unreadable) = sorted_out(&stores.clusters.state());
    let (gpu_nodes, skipped) = sorted_out(&stores.gpu_nodes.state());
    let skipped: BTreeSet<_> = skipped.into_keys().collect();
    let mut nodes = facts_by_name(&stores.nodes.state());
    nodes.retain(|name, _| !skipped.contains(name));
    Ok(Snapshot {
        clusters,
        unreadable,
        nodes,
        skipped,
        gpu_nodes: by_name(gpu_nodes),
        pods: by_node(&stores.pods.state(), namespace),
        daemon_sets: by_name(stores.daemon_sets.state()),
        pending: Pending::default(),
    })
}

impl Snapshot {
    /// The same world with this version of a cluster: the controller's own watch may be ahead of the cache.
    #[must_use]
    pub fn with(mut self, cluster: &Arc<GpuRdmaCluster>) -> Self {
        self.clusters
            .retain(|other| other.name_any() != cluster.name_any());
        self.clusters.push(Arc::clone(cluster));
        self.unreadable.remove(&cluster.name_any());
        self
    }

    /// All clusters, checked.
    #[must_use]
    pub fn validated(&self) -> Validated {
        validate(&self.clusters).with_unreadable(&self.unreadable)
    }

    /// Who has each node now.
    #[must_use]
    pub fn present(&self) -> BTreeMap<String, Present> {
        let of = |node: &GpuRdmaNode| Present {
            cluster: node.spec.cluster.clone(),
            selector: node
                .annotations()
                .get(SELECTOR_ANNOTATION)
                .cloned()
                .unwrap_or_default(),
        };
        self.gpu_nodes
            .iter()
            .map(|(name, node)| (name.clone(), of(node)))
            .collect()
    }

    /// The `GpuRdmaNode` of this very Node, not of a namesake before it.
    #[must_use]
    pub fn own_object(&self, node: &str) -> Option<&GpuRdmaNode> {
        let facts = self.nodes.get(node)?;
        let object = self.gpu_nodes.get(node)?;
        (object.spec.node_uid == facts.uid).then_some(object)
    }

    /// Rails and addresses that a node was given.
    #[must_use]
    pub fn given(&self, node: &str) -> Given {
        let noted = self
            .pending
            .given
            .get(node)
            .map(|noted| noted.given.clone());
        noted
            .or_else(|| self.own_object(node).map(Given::of))
            .unwrap_or_default()
    }

    /// Hardware layouts of a cluster.
    #[must_use]
    pub fn layouts(&self, cluster: &str) -> Vec<RailLayout> {
        let mut clusters = self.clusters.iter();
        let Some(object) = clusters.find(|object| object.name_any() == cluster) else {
            return Vec::new();
        };
        let noted = object.uid().and_then(|uid| self.pending.layouts.get(&uid));
        let kept = object.status.as_ref().map(|status| &status.rail_layouts);
        noted.or(kept).cloned().unwrap_or_default()
    }

    /// The driver pod on a node.
    #[must_use]
    pub fn driver_on(&self, node: &str) -> Option<(&PodFacts, &DriverPod)> {
        driver_among(self.pods.get(node)?)
    }

    /// `GpuRdmaNodes` without a single Node beside them: the node cache cannot be right.
    #[must_use]
    pub fn suspicious(&self) -> bool {
        self.nodes.is_empty() && !self.gpu_nodes.is_empty()
    }
}

type SortedOut<K> = (Vec<Arc<K>>, BTreeMap<String, String>);

/// Objects that can be read, and of the others the name and the reason.
fn sorted_out<K: Resource + Clone>(objects: &[Arc<Guarded<K>>]) -> SortedOut<K> {
    let mut result = SortedOut::default();
    for object in objects {
        match object.read() {
            Ok(read) => result.0.push(Arc::clone(read)),
            Err(reason) => {
                result.1.insert(object.name_any(), reason.to_owned());
            }
        }
    }
    result
}

fn by_name<K: ResourceExt>(objects: Vec<Arc<K>>) -> BTreeMap<String, Arc<K>> {
    objects
        .into_iter()
        .map(|object| (object.name_any(), object))
        .collect()
}

/// Facts of nodes, by name.
#[must_use]
pub fn facts_by_name(nodes: &[Arc<Node>]) -> BTreeMap<String, NodeFacts> {
    nodes
        .iter()
        .map(|node| (node.name_any(), NodeFacts::of(node)))
        .collect()
}

/// Facts of the pods that ask for devices or are ours, by node, in the order of their names. A pod is ours in our
/// namespace only.
#[must_use]
pub fn by_node(pods: &[Arc<Pod>], namespace: &str) -> BTreeMap<String, Vec<PodFacts>> {
    let mut result: BTreeMap<String, Vec<PodFacts>> = BTreeMap::new();
    let ours = |mut facts: PodFacts| {
        let here = facts.namespace == namespace;
        facts.driver = facts.driver.filter(|_| here);
        facts.plugin &= here;
        facts
    };
    let facts = pods.iter().filter_map(|pod| PodFacts::of(pod)).map(ours);
    for facts in facts.filter(PodFacts::is_relevant) {
        result.entry(facts.node.clone()).or_default().push(facts);
    }
    for pods in result.values_mut() {
        pods.sort_by_key(PodFacts::id);
    }
    result
}

#[cfg(test)]
mod tests;
