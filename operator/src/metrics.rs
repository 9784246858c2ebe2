//! Counters and gauges of the operator, in the `OpenMetrics` text form.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::status::PHASES;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failure {
    category: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Nodes {
    cluster: String,
    phase: &'static str,
}

/// The operator's metrics; clones share them.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    reconciles: Counter,
    errors: Family<Failure, Counter>,
    nodes: Family<Nodes, Gauge>,
    leader: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("gpu_rdma_operator");
        let metrics = (
            Counter::default(),
            Family::default(),
            Family::default(),
            Gauge::default(),
        );
        let (reconciles, errors, nodes, leader) = metrics;
        registry.register(
            "reconciles",
            "Reconciliations that succeeded",
            Counter::clone(&reconciles),
        );
        registry.register(
            "errors",
            "Reconciliations that failed, by category",
            Family::clone(&errors),
        );
        registry.register("nodes", "Nodes by cluster and phase", Family::clone(&nodes));
        registry.register(
            "leader",
            "Whether this replica leads",
            Gauge::clone(&leader),
        );
        Self {
            registry: Arc::new(Mutex::new(registry)),
            reconciles,
            errors,
            nodes,
            leader,
        }
    }
}

impl Metrics {
    /// A reconciliation succeeded.
    pub fn reconciled(&self) {
        self.reconciles.inc();
    }

    /// A reconciliation failed.
    pub fn failed(&self, category: &'static str) {
        self.errors.get_or_create(&Failure { category }).inc();
    }

    /// Whether this replica leads.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Nodes of a cluster by phase; phases without nodes are zero, not absent.
    pub fn nodes(&self, cluster: &str, phases: &BTreeMap<&'static str, i64>) {
        for phase in PHASES {
            let labels = Nodes {
                cluster: cluster.to_owned(),
                phase,
            };
            self.nodes
                .get_or_create(&labels)
                .set(phases.get(phase).copied().unwrap_or(0));
        }
    }

    /// A cluster is gone.
    pub fn forget(&self, cluster: &str) {
        for phase in PHASES {
            self.nodes.remove(&Nodes {
                cluster: cluster.to_owned(),
                phase,
            });
        }
    }

    /// All metrics as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

#[cfg(test)]
mod tests;
