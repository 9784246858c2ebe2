//! A world of clusters and nodes in memory, for tests that plan and apply in turns.

use std::sync::Arc;

use serde_json::Value;

use super::super::*;
use crate::assign::assign;
use crate::validate::OS_LABEL;
use crate::validate::tests::object;

/// A small world to plan in.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) snapshot: Snapshot,
    pub(crate) now: Timestamp,
}

impl World {
    pub(crate) fn new(clusters: &[(&str, Value)], nodes: &[&str]) -> Self {
        let mut world = Self::default();
        world.snapshot.clusters = clusters
            .iter()
            .map(|(name, spec)| object(name, spec))
            .collect();
        for name in nodes {
            let labels = BTreeMap::from([(OS_LABEL.to_owned(), "linux".to_owned())]);
            let facts = NodeFacts {
                uid: format!("uid-{name}"),
                labels,
                ..NodeFacts::default()
            };
            world.snapshot.nodes.insert((*name).to_owned(), facts);
        }
        world
    }

    pub(crate) fn delete(&mut self, cluster: &str) {
        for object in &mut self.snapshot.clusters {
            if object.name_any() == cluster {
                let deleted = "2026-01-02T00:00:00Z".parse().unwrap();
                let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(deleted);
                Arc::make_mut(object).metadata.deletion_timestamp = Some(time);
            }
        }
    }

    pub(crate) fn plan(&self, cluster: &str) -> Changes {
        let validated = self.snapshot.validated();
        let assignments = assign(&validated, &self.snapshot.nodes, &self.snapshot.present());
        let config = config();
        plan(
            &self.snapshot,
            &validated,
            &assignments,
            Settings {
                namespace: "ns",
                config: &config,
            },
            cluster,
            self.now,
        )
    }

    /// Carries out what the pure part of changes says, as the API server would.
    pub(crate) fn apply(&mut self, changes: &Changes) {
        for node in &changes.gpu_nodes {
            let mut node = node.clone();
            node.metadata.generation = Some(1);
            node.status = self
                .snapshot
                .gpu_nodes
                .get(&node.name_any())
                .and_then(|old| old.status.clone());
            self.snapshot
                .gpu_nodes
                .insert(node.name_any(), Arc::new(node));
        }
        for change in &changes.labels {
            let facts = self.snapshot.nodes.get_mut(&change.node).unwrap();
            for (label, value) in &change.labels {
                facts.labels.remove(*label);
                facts
                    .labels
                    .extend(value.clone().map(|value| ((*label).to_owned(), value)));
            }
        }
        for switch in &changes.switches {
            let facts = self.snapshot.nodes.get_mut(&switch.node).unwrap();
            let label = crds::names::GPU_PLUGIN_LABEL;
            assert_eq!(facts.labels.get(label), switch.seen.as_ref());
            facts.labels.remove(label);
            let value = switch.label.clone().map(|value| (label.to_owned(), value));
            facts.labels.extend(value);
            facts.gpu_plugin_was.clone_from(&switch.was);
        }
        for decision in &changes.maintenance {
            self.remember(decision);
        }
        for node in &changes.untaint {
            self.snapshot.nodes.get_mut(node).unwrap().tainted = false;
        }
        for name in &changes.forget {
            self.snapshot.gpu_nodes.remove(name);
        }
        for set in &changes.daemon_sets {
            self.snapshot
                .daemon_sets
                .insert(set.name_any(), Arc::new(set.clone()));
        }
        for prune in &changes.prune {
            self.snapshot.daemon_sets.remove(&prune.name);
        }
    }

    fn remember(&mut self, decision: &Decision) {
        let object = self.snapshot.gpu_nodes.get_mut(&decision.node);
        let (Some(object), Some(record)) = (object, &decision.record) else {
            return;
        };
        let text = record.to_text().unwrap_or_default();
        let annotations = Arc::make_mut(object).annotations_mut();
        annotations.insert(crds::names::ROLLOUT_STATE.to_owned(), text);
    }

    /// Plans and applies until nothing changes; more than three rounds would be a fight with itself.
    pub(crate) fn settle(&mut self, cluster: &str) {
        for _ in 0..3 {
            let changes = self.plan(cluster);
            if changes.is_empty() {
                return;
            }
            self.apply(&changes);
        }
        panic!("does not settle: {:?}", self.plan(cluster));
    }

    /// Settles, lets every agent report a phase, and settles again.
    pub(crate) fn report(&mut self, cluster: &str, phase: &str) {
        self.settle(cluster);
        let names: Vec<_> = self.snapshot.gpu_nodes.keys().cloned().collect();
        for name in names {
            self.status(&name, &serde_json::json!({"phase": phase}));
        }
        self.settle(cluster);
    }

    pub(crate) fn status(&mut self, node: &str, status: &Value) {
        let object = Arc::make_mut(self.snapshot.gpu_nodes.get_mut(node).unwrap());
        object.status = Some(serde_json::from_value(status.clone()).unwrap());
    }

    pub(crate) fn label(&self, node: &str, label: &str) -> Option<&str> {
        self.snapshot.nodes[node]
            .labels
            .get(label)
            .map(String::as_str)
    }

    pub(crate) fn set_label(&mut self, node: &str, label: &str, value: &str) {
        self.snapshot
            .nodes
            .get_mut(node)
            .unwrap()
            .labels
            .insert(label.to_owned(), value.to_owned());
    }

    pub(crate) fn sets(&self) -> Vec<&str> {
        self.snapshot
            .daemon_sets
            .keys()
            .map(String::as_str)
            .collect()
    }
}

fn config() -> Config {
    serde_yaml::from_str(
        "agent: {image: 'example.org/agent:1'}\nplugin: {image: 'example.org/plugin:1'}\n",
    )
    .unwrap()
}
