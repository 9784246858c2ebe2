//! Writes [`Changes`]. The order matters: a driver's DaemonSet lets go of its pods before labels move, and a
//! `GpuRdmaNode` is forgotten last, so that an interrupted release is taken up again.

use std::future::Future;

use crds::GpuRdmaNode;
use crds::names::ASSIGN_MANAGER;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::api::DeleteParams;
use kube::{Api, Client};

use crate::error::Error;
use crate::events::Events;
use crate::kube_io::{self, MANAGER};
use crate::maintenance;
use crate::plan::Changes;

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
    /// `GpuRdmaNodes` deleted.
    pub released: usize,
    /// Maintenance steps taken.
    pub steps: usize,
}

/// Writes everything; the first failure ends it, and the next reconciliation goes on from there.
pub async fn apply(
    client: &Client,
    namespace: &str,
    events: &Events,
    changes: Changes,
) -> Result<Applied, Error> {
    // Without `..`: a new kind of change does not compile until it is applied.
    let Changes {
        daemon_sets,
        prune,
        gpu_nodes,
        labels,
        untaint,
        forget,
        maintenance,
    } = changes;
    let mut applied = Applied {
        daemon_sets: daemon_sets.len() + prune.len(),
        assigned: gpu_nodes.len(),
        labelled: labels.len(),
        released: forget.len(),
        steps: 0,
    };
    let sets = Api::<DaemonSet>::namespaced(client.clone(), namespace);
    for gone in &prune {
        let params = if gone.keep_pods {
            DeleteParams::orphan()
        } else {
            DeleteParams::background()
        };
        kube_io::delete(&sets, &gone.name, &params).await?;
    }
    for set in &daemon_sets {
        kube_io::apply(&sets, set, MANAGER, true).await?;
    }
    let objects = Api::<GpuRdmaNode>::all(client.clone());
    each(
        gpu_nodes
            .iter()
            .map(|node| kube_io::apply(&objects, node, ASSIGN_MANAGER, false)),
    )
    .await?;
    each(
        labels
            .iter()
            .map(|change| kube_io::label_node(client, &change.node, &change.labels)),
    )
    .await?;
    each(
        untaint
            .iter()
            .map(|node| kube_io::set_taint(client, node, false)),
    )
    .await?;
    let params = DeleteParams::default();
    each(
        forget
            .iter()
            .map(|node| kube_io::delete(&objects, node, &params)),
    )
    .await?;
    for decision in &maintenance {
        applied.steps += maintenance::carry_out(client, events, decision).await?;
    }
    Ok(applied)
}

async fn each<T, F: Future<Output = Result<T, Error>>>(
    requests: impl Iterator<Item = F>,
) -> Result<(), Error> {
    let requests: Vec<F> = requests.collect();
    stream::iter(requests)
        .buffer_unordered(PARALLEL)
        .try_for_each(|_| async { Ok(()) })
        .await
}
