//! The caches: one watch per kind, stripped to what is read, and a bell that rings when something that matters here
//! has changed. A node's heartbeat or a pod without our resources rings nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crds::names::DRIVER_LABEL;
use crds::{GpuRdmaCluster, GpuRdmaNode};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::components::{MANAGED_BY_LABEL, MANAGER};
use crate::facts::{NodeFacts, strip_node, strip_pod};
use crate::guarded::Guarded;
use crate::rollout::{Decision, Record, Step};

mod essence;

/// What is cached.
#[derive(Clone)]
pub struct Stores {
    /// All clusters.
    pub clusters: Store<Guarded<GpuRdmaCluster>>,
    /// All nodes.
    pub nodes: Store<Node>,
    /// All `GpuRdmaNodes`.
    pub gpu_nodes: Store<Guarded<GpuRdmaNode>>,
    /// Pods that are on a node and have not ended.
    pub pods: Store<Pod>,
    /// DaemonSets that the operator made.
    pub daemon_sets: Store<DaemonSet>,
}

impl Stores {
    /// Starts every watch. The tasks run until they are aborted.
    #[must_use]
    pub fn start(
        client: &Client,
        namespace: &str,
        bell: &Arc<Notify>,
    ) -> (Self, Vec<JoinHandle<()>>) {
        let all = watcher::Config::default;
        let placed = all().fields("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed");
        let ours = all().labels(&format!("{MANAGED_BY_LABEL}={MANAGER}"));
        let (clusters, task1) = follow(
            Api::all(client.clone()),
            all(),
            strip_guarded,
            essence::cluster,
            bell,
        );
        let (nodes, task2) = follow(
            Api::all(client.clone()),
            all(),
            strip_node,
            essence::node,
            bell,
        );
        let (gpu_nodes, task3) = follow(
            Api::all(client.clone()),
            all(),
            strip_guarded,
            essence::gpu_node,
            bell,
        );
        let (pods, task4) = follow(
            Api::all(client.clone()),
            placed,
            strip_pod,
            essence::pod,
            bell,
        );
        let daemon_sets = Api::namespaced(client.clone(), namespace);
        let (daemon_sets, task5) = follow(daemon_sets, ours, strip_meta, essence::daemon_set, bell);
        (
            Self {
                clusters,
                nodes,
                gpu_nodes,
                pods,
                daemon_sets,
            },
            vec![task1, task2, task3, task4, task5],
        )
    }

    /// Waits until every cache is filled.
    pub async fn wait_until_ready(&self) -> Result<(), reflector::store::WriterDropped> {
        self.clusters.wait_until_ready().await?;
        self.nodes.wait_until_ready().await?;
        self.gpu_nodes.wait_until_ready().await?;
        self.pods.wait_until_ready().await?;
        self.daemon_sets.wait_until_ready().await
    }

    /// Whether every cache is filled: before that, absence means nothing.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.wait_until_ready()
            .now_or_never()
            .is_some_and(|filled| filled.is_ok())
    }
}

/// How long a write may take to come back through a watch.
const ECHO: Duration = Duration::from_secs(10);

impl Stores {
    /// Waits until the caches show the maintenance steps that were just taken: the next decision counts slots in them.
    pub async fn wait_for_echo(&self, decisions: &[Decision]) -> bool {
        let shown = async {
            while !decisions.iter().all(|decision| self.shows(decision)) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(ECHO, shown).await.is_ok()
    }

    fn shows(&self, decision: &Decision) -> bool {
        let node = self.nodes.get(&ObjectRef::new(&decision.node));
        let object = self.gpu_nodes.get(&ObjectRef::new(&decision.node));
        let object = object.as_ref().and_then(|object| object.read().ok());
        let object = object.map(AsRef::as_ref);
        let Some(node) = node else {
            return true;
        };
        let facts = NodeFacts::of(&node);
        // An eviction adds to the record who refused it: the counts show that it came back.
        let remembered = |record: &Record| {
            object.is_none_or(|object| {
                Record::of(object).with_refusals(Vec::new()) == record.with_refusals(Vec::new())
            })
        };
        decision.record.as_ref().is_none_or(remembered)
            && decision
                .steps
                .iter()
                .all(|step| shown(step, &facts, object))
    }
}

/// Whether a step can be seen. A driver pod is left to its own state, and a node without its object has no grant.
fn shown(step: &Step, node: &NodeFacts, object: Option<&GpuRdmaNode>) -> bool {
    let grant = |object: &GpuRdmaNode| object.spec.maintenance.clone();
    match step {
        Step::Taint => node.tainted,
        Step::Untaint => !node.tainted,
        Step::Grant(given) => object.is_none_or(|object| grant(object).as_ref() == Some(given)),
        Step::EndGrant(_) => object.is_none_or(|object| grant(object).is_none()),
        Step::DriverLabel { wanted } => node.labels.contains_key(DRIVER_LABEL) == *wanted,
        Step::Evict(_)
        | Step::Postpone(_)
        | Step::Fail(_)
        | Step::DeleteDriverPod { .. }
        | Step::ReplaceDriverPod { .. } => true,
    }
}

fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    strip: fn(&mut K),
    essence: fn(&K) -> Option<u64>,
    bell: &Arc<Notify>,
) -> (Store<K>, JoinHandle<()>)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
    K: Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let stream = watcher(api, config)
        .default_backoff()
        .modify(strip)
        .reflect(writer);
    let bell = Arc::clone(bell);
    let task = tokio::spawn(async move {
        let mut seen = Seen::default();
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) if seen.matters(&event, essence) => bell.notify_one(),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(kind = %K::kind(&()), error = %crate::error::chain(&error), "watch failed; it is tried again");
                }
            }
        }
    });
    (store, task)
}

/// What was last seen of each object, as a hash of what matters of it.
#[derive(Debug, Default)]
pub struct Seen(HashMap<(String, String), u64>);

impl Seen {
    /// Whether an event changes anything that matters. An object without essence matters only once it loses it.
    pub fn matters<K: ResourceExt>(
        &mut self,
        event: &watcher::Event<K>,
        essence: fn(&K) -> Option<u64>,
    ) -> bool {
        match event {
            watcher::Event::Init => {
                self.0.clear();
                false
            }
            watcher::Event::InitDone => true,
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                self.update(key(object), essence(object))
            }
            watcher::Event::Delete(object) => self.0.remove(&key(object)).is_some(),
        }
    }

    fn update(&mut self, key: (String, String), essence: Option<u64>) -> bool {
        match essence {
            Some(now) => self.0.insert(key, now) != Some(now),
            None => self.0.remove(&key).is_some(),
        }
    }
}

fn key<K: ResourceExt>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn strip_meta<K: ResourceExt>(object: &mut K) {
    object.managed_fields_mut().clear();
}

/// Says of an object that cannot be read why not, once per change of it.
fn strip_guarded<K>(object: &mut Guarded<K>)
where
    K: Resource<DynamicType = ()> + Clone,
{
    strip_meta(object);
    if let Err(reason) = object.read() {
        let (kind, name) = (K::kind(&()), object.name_any());
        tracing::error!(%kind, name, reason, "an object cannot be read and is left as it is");
    }
}

#[cfg(test)]
mod tests;
