//! Writes [`Changes`]. The order matters: a driver's DaemonSet lets go of its pods before labels move, and a
//! `GpuRdmaNode` is forgotten last, so that an interrupted release is taken up again. A write that fails ends what follows
//! from it for that object, and nothing else.

use std::future::Future;

use crds::GpuRdmaNode;
use crds::names::ASSIGN_MANAGER;
use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};

use crate::error::Error;
use crate::kube_io::{self, MANAGER};
use crate::maintenance::{self, Hands};
use crate::plan::{Changes, Prune};
use crate::rollout::Decision;

mod failures;

use failures::Failures;

/// Requests in flight at a time: a first pass over thousands of nodes neither crawls nor floods.
const PARALLEL: usize = 16;

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// DaemonSets written or deleted.
    pub daemon_sets: usize,
    /// `GpuRdmaNodes` written.
    pub assigned: usize,
    /// Nodes whose labels changed.
    pub labelled: usize,
    /// Nodes whose other device plugin was switched off or on.
    pub switched: usize,
    /// Nodes whose taint was taken away.
    pub untainted: usize,
    /// `GpuRdmaNodes` deleted.
    pub released: usize,
    /// Maintenance steps taken.
    pub steps: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How much was written.
    pub applied: Applied,
    /// Maintenance that was carried out.
    pub maintained: Vec<Decision>,
    /// What could not be written.
    pub failure: Option<Error>,
}

/// Writes everything that can be written; the next reconciliation goes on from there.
pub async fn apply(hands: Hands<'_>, namespace: &str, changes: Changes) -> Outcome {
    let mut failures = Failures::default();
    let mut outcome = Outcome::default();
    write(hands, namespace, changes, &mut outcome, &mut failures).await;
    outcome.failure = failures.into_error();
    outcome
}

async fn write(
    hands: Hands<'_>,
    namespace: &str,
    changes: Changes,
    outcome: &mut Outcome,
    failures: &mut Failures,
) {
    let client = hands.client;
    // Without `..`: a new kind of change does not compile until it is applied.
    let Changes {
        daemon_sets,
        prune,
        gpu_nodes,
        labels,
        switches,
        untaint,
        forget,
        maintenance,
        // Said in the status; what is to be done is in the switches.
        takeover: _,
        // Said in the status; what of it is new is in the objects.
        network: _,
    } = changes;
    let applied = &mut outcome.applied;
    let sets = Api::<DaemonSet>::namespaced(client.clone(), namespace);
    let deletions = prune
        .iter()
        .map(|gone| (set_id(&gone.name), delete(&sets, gone)));
    applied.daemon_sets = each(failures, deletions).await;
    if !failures.none() {
        return;
    }
    let sets = daemon_sets.iter().map(|set| {
        let request = kube_io::apply(&sets, set, MANAGER, true);
        (set_id(&set.name_any()), request)
    });
    applied.daemon_sets += each(failures, sets).await;
    let objects = Api::<GpuRdmaNode>::all(client.clone());
    let assigned = gpu_nodes.iter().map(|node| {
        let request = kube_io::apply(&objects, node, ASSIGN_MANAGER, false);
        (node.name_any(), request)
    });
    applied.assigned = each(failures, assigned).await;
    let labels = labels.iter().map(|change| {
        let request = kube_io::label_node(client, &change.node, &change.labels);
        (change.node.clone(), request)
    });
    applied.labelled = each(failures, labels).await;
    let switches = switches.iter().map(|switch| {
        let request = kube_io::switch_gpu_plugin(client, switch);
        (switch.node.clone(), request)
    });
    applied.switched = each(failures, switches).await;
    let untaint = untaint
        .iter()
        .map(|node| (node.clone(), kube_io::set_taint(client, node, false)));
    applied.untainted = each(failures, untaint).await;
    let params = DeleteParams::default();
    let forget = forget
        .iter()
        .map(|node| (node.clone(), kube_io::delete(&objects, node, &params)));
    applied.released = each(failures, forget).await;
    maintain(hands, maintenance, outcome, failures).await;
}

fn set_id(name: &str) -> String {
    format!("DaemonSet {name}")
}

async fn delete(sets: &Api<DaemonSet>, gone: &Prune) -> Result<(), Error> {
    let params = if gone.keep_pods {
        DeleteParams::orphan()
    } else {
        DeleteParams::background()
    };
    kube_io::delete(sets, &gone.name, &params).await
}

async fn maintain(
    hands: Hands<'_>,
    maintenance: Vec<Decision>,
    outcome: &mut Outcome,
    failures: &mut Failures,
) {
    for decision in maintenance {
        if failures.hopeless() {
            return;
        }
        if failures.of(&decision.node) {
            continue;
        }
        let result = maintenance::carry_out(hands, &decision).await;
        outcome.applied.steps += *result.as_ref().unwrap_or(&0);
        if failures.note(&decision.node, result) {
            outcome.maintained.push(decision);
        }
    }
}

/// Sends one request per object that has not failed before, and says how many succeeded.
async fn each<T, F: Future<Output = Result<T, Error>>>(
    failures: &mut Failures,
    requests: impl Iterator<Item = (String, F)>,
) -> usize {
    let requests: Vec<_> = requests
        .filter(|(object, _)| !failures.of(object))
        .map(|(object, request)| async move { (object, request.await) })
        .collect();
    let mut results = stream::iter(requests).buffer_unordered(PARALLEL);
    let mut written = 0;
    while !failures.hopeless() {
        let Some((object, result)) = results.next().await else {
            break;
        };
        written += usize::from(failures.note(&object, result));
    }
    written
}

#[cfg(test)]
mod tests;
