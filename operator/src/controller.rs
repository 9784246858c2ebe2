//! Drives the pipeline for one cluster: gather → validate → assign → plan → apply → status, with the finalizer around
//! it. Assignment is global, so clusters are reconciled one at a time, and any change that matters rings for all.

use std::sync::Arc;
use std::time::Duration;

use crds::GpuRdmaCluster;
use crds::names::FINALIZER;
use crds::reasons::{ClusterCondition, EventReason};
use futures::stream::{self, Stream};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event, finalizer};
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::Notify;

use crate::apply::{Outcome, apply};
use crate::assign::{Assignments, assign};
use crate::backoff::Backoff;
use crate::conditions::{Transition, listed};
use crate::config::Config;
use crate::error::{Category, Error};
use crate::events::Events;
use crate::gather::{Snapshot, gather};
use crate::guarded::Guarded;
use crate::ledger::Ledger;
use crate::maintenance::Hands;
use crate::metrics::Metrics;
use crate::plan::{Changes, Settings, plan};
use crate::status::{self, Built};
use crate::stores::Stores;
use crate::validate::Validated;

/// Looked at again even if nothing rings.
const RESYNC: Duration = Duration::from_mins(5);
/// Changes are collected for so long: a thousand nodes that report at once are one reconciliation, not a thousand.
const COLLECT: Duration = Duration::from_millis(500);

/// What every reconciliation shares.
pub struct Context {
    /// The API.
    pub client: Client,
    /// The API, by a client that takes no for an answer: for evictions.
    pub evictions: Client,
    /// The caches.
    pub stores: Stores,
    /// Events.
    pub events: Events,
    /// Metrics.
    pub metrics: Metrics,
    /// Delays after failures.
    pub backoff: Backoff,
    /// Rails and addresses that the caches may not show yet.
    pub ledger: Ledger,
    /// The operator's configuration.
    pub config: Config,
    /// The operator's namespace.
    pub namespace: String,
}

/// A ring for every burst of changes.
pub fn bursts(bell: Arc<Notify>) -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold(bell, |bell| async move {
        bell.notified().await;
        tokio::time::sleep(COLLECT).await;
        Some(((), bell))
    })
}

/// Reconciles one cluster; one that cannot be read waits until it is corrected.
pub async fn reconcile_readable(
    cluster: Arc<Guarded<GpuRdmaCluster>>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    match cluster.read() {
        Ok(cluster) => reconcile(Arc::clone(cluster), context).await,
        Err(_) => Ok(Action::await_change()),
    }
}

/// Reconciles one cluster.
pub async fn reconcile(
    cluster: Arc<GpuRdmaCluster>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    let name = cluster.name_any();
    let api = Api::<GpuRdmaCluster>::all(context.client.clone());
    let result = finalizer(&api, FINALIZER, cluster, |event| async {
        match event {
            Event::Apply(cluster) => converge(&cluster, &context).await,
            Event::Cleanup(cluster) => release(&cluster, &context).await,
        }
    })
    .await;
    let action = result.map_err(|source| Error::Finalizer {
        cluster: name.clone(),
        source: Box::new(source),
    })?;
    context.metrics.reconciled();
    context.backoff.succeeded(&name);
    Ok(action)
}

/// What follows from a failure: metric, log line, Event and delay, all by its category.
#[must_use]
pub fn on_error(
    cluster: &Guarded<GpuRdmaCluster>,
    error: &Error,
    context: &Arc<Context>,
) -> Action {
    let (name, category, message) = (cluster.name_any(), error.category(), error.chain());
    let handling = category.handling();
    context.metrics.failed(handling.label);
    match category {
        Category::NotSynced | Category::Gone => {
            tracing::debug!(cluster = name, message, "reconciliation put off");
        }
        _ => tracing::warn!(
            cluster = name,
            category = handling.label,
            message,
            "reconciliation failed"
        ),
    }
    if let Some((reason, remedy)) = handling.event {
        let (events, about) = (context.events.clone(), cluster.object_ref(&()));
        tokio::spawn(async move {
            events
                .warning(&about, reason, "Reconcile", format!("{message}. {remedy}"))
                .await;
        });
    }
    Action::requeue(context.backoff.failed(&name, handling.delay))
}

/// Everything the pure steps found out.
struct Findings {
    snapshot: Snapshot,
    validated: Validated,
    assignments: Assignments,
    changes: Changes,
}

fn look(cluster: &Arc<GpuRdmaCluster>, context: &Context) -> Result<Findings, Error> {
    let snapshot = gather(&context.stores, &context.namespace)?.with(cluster);
    let snapshot = context.ledger.overlay(snapshot);
    let validated = snapshot.validated();
    let assignments = assign(&validated, &snapshot.nodes, &snapshot.present());
    let settings = Settings {
        namespace: &context.namespace,
        config: &context.config,
    };
    let changes = plan(
        &snapshot,
        &validated,
        &assignments,
        settings,
        &cluster.name_any(),
        Timestamp::now(),
    );
    context.ledger.note(cluster.uid(), &changes);
    Ok(Findings {
        snapshot,
        validated,
        assignments,
        changes,
    })
}

async fn converge(cluster: &Arc<GpuRdmaCluster>, context: &Context) -> Result<Action, Error> {
    let findings = look(cluster, context)?;
    let outcome = carry_out(context, &findings.changes).await;
    let failure = outcome.as_ref().err().map(Error::chain);
    let inputs = status::Inputs {
        cluster,
        snapshot: &findings.snapshot,
        validated: &findings.validated,
        assignments: &findings.assignments,
        maintenance: &findings.changes.maintenance,
        takeover: &findings.changes.takeover,
        network: findings.changes.network.as_ref(),
        failure: failure.as_deref(),
    };
    let built = status::build(inputs, Timestamp::now());
    report(cluster, context, built).await?;
    outcome.map(|()| Action::requeue(next_look(&findings.changes, Timestamp::now())))
}

/// Sooner than usual where a wait of the rollout ends.
fn next_look(changes: &Changes, now: Timestamp) -> Duration {
    let soonest = changes.maintenance.iter().filter_map(|one| one.wake).min();
    let wait = soonest.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    wait.map_or(RESYNC, |wait| wait.saturating_add(COLLECT).min(RESYNC))
}

async fn carry_out(context: &Context, changes: &Changes) -> Result<(), Error> {
    if changes.is_empty() {
        return Ok(());
    }
    let Outcome {
        applied,
        maintained,
        failure,
    } = apply(
        Hands {
            client: &context.client,
            evictions: &context.evictions,
            events: &context.events,
        },
        &context.namespace,
        changes.clone(),
    )
    .await;
    tracing::info!(?applied, "applied");
    let shown = context.stores.wait_for_echo(&maintained).await;
    match failure {
        Some(failure) => Err(failure),
        None if shown => Ok(()),
        None => Err(Error::NotSynced),
    }
}

async fn report(
    cluster: &Arc<GpuRdmaCluster>,
    context: &Context,
    built: Built,
) -> Result<(), Error> {
    let Built {
        status,
        transitions,
        phases,
    } = built;
    context.metrics.nodes(&cluster.name_any(), &phases);
    if status::write(&context.client, cluster, &status).await? {
        for transition in &transitions {
            announce(cluster, context, transition).await;
        }
    }
    Ok(())
}

/// Ready and Conflict are worth an Event each time they change, the others when they begin.
async fn announce(cluster: &GpuRdmaCluster, context: &Context, transition: &Transition) {
    let about = cluster.object_ref(&());
    let Transition {
        kind,
        holds,
        reason,
        message,
    } = transition;
    let (warning, reason) = match (kind, holds) {
        (ClusterCondition::Ready, true) => (false, reason.as_str()),
        (ClusterCondition::Ready, false) => (true, reason.as_str()),
        (ClusterCondition::Conflict, true) => (true, EventReason::ConflictDetected.as_str()),
        (ClusterCondition::Conflict, false) if cluster.status.is_some() => {
            (false, EventReason::ConflictResolved.as_str())
        }
        (ClusterCondition::NotYetSupported | ClusterCondition::Degraded, true) => {
            (true, reason.as_str())
        }
        _ => return,
    };
    if warning {
        context
            .events
            .warning(&about, reason, "Reconcile", message.clone())
            .await;
    } else {
        context
            .events
            .normal(&about, reason, "Reconcile", message.clone())
            .await;
    }
}

/// Lets go of every node. The finalizer goes only after a look that finds nothing left to do.
async fn release(cluster: &Arc<GpuRdmaCluster>, context: &Context) -> Result<Action, Error> {
    let changes = look(cluster, context)?.changes;
    if changes.holds_nothing() {
        context.metrics.forget(&cluster.name_any());
        context.ledger.forget(cluster.uid().as_deref());
        return Ok(Action::await_change());
    }
    if let Some(note) = waits_for(&changes) {
        let reason = EventReason::MaintenanceBlocked.as_str();
        let about = cluster.object_ref(&());
        context.events.warning(&about, reason, "Delete", note).await;
    }
    carry_out(context, &changes).await?;
    Err(Error::Releasing {
        cluster: cluster.name_any(),
    })
}

/// What a deleted cluster waits for, where nothing is left to be done about it now.
fn waits_for(changes: &Changes) -> Option<String> {
    if !changes.is_empty() {
        return None;
    }
    if let Some((node, standing)) = changes.takeover.first_key_value() {
        return Some(format!(
            "The cluster stays until the GPUs of {} are with the other device plugin again. {node}: {} With spec.devicePlugin.giveBack false they stay as they are.",
            listed(&changes.takeover.keys().collect::<Vec<_>>()),
            standing.message
        ));
    }
    let nodes: Vec<_> = changes
        .maintenance
        .iter()
        .map(|one| one.node.as_str())
        .collect();
    let text = format!(
        "The cluster stays until these hosts are as they were before, or their agents have confirmed that nothing runs: {}. See their plan and conditions: kubectl get grn. With spec.deletionPolicy Retain nothing is taken back.",
        listed(&nodes)
    );
    (!nodes.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
