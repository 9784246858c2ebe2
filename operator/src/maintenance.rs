//! Carries out the steps of [`crate::rollout`]: taints, evictions, grants, driver labels and driver pods.

use std::collections::BTreeMap;

use crds::names::{DRIVER_LABEL, GROUP, RESET_ATTEMPTS, ROLLOUT_MANAGER, ROLLOUT_STATE};
use crds::node::Maintenance;
use crds::reasons::EventReason;
use crds::{GpuRdmaNode, GpuRdmaNodeSpec};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::error::Error;
use crate::events::Events;
use crate::kube_io;
use crate::rollout::{Decision, End, Record, Step};

/// What steps are taken with.
#[derive(Clone, Copy)]
pub struct Hands<'a> {
    /// The API.
    pub client: &'a Client,
    /// The API, by a client that takes no for an answer: for evictions.
    pub evictions: &'a Client,
    /// Events.
    pub events: &'a Events,
}

/// Takes the steps of one node, in order, and says how many. What is to be remembered is written first.
pub async fn carry_out(hands: Hands<'_>, decision: &Decision) -> Result<usize, Error> {
    if let Some(record) = &decision.record {
        remember(hands.client, &decision.node, record).await?;
    }
    for step in &decision.steps {
        take(hands, decision, step).await?;
    }
    Ok(decision.steps.len())
}

async fn remember(client: &Client, node: &str, record: &Record) -> Result<(), Error> {
    kube_io::annotate(client, node, ROLLOUT_STATE, record.to_text().as_deref()).await
}

async fn take(hands: Hands<'_>, decision: &Decision, step: &Step) -> Result<(), Error> {
    let node = decision.node.as_str();
    let Hands { client, events, .. } = hands;
    tracing::info!(node, ?step, "maintenance");
    match step {
        Step::Taint => kube_io::set_taint(client, node, true).await,
        Step::Untaint => kube_io::set_taint(client, node, false).await,
        Step::Evict(pods) => evict(hands, decision, pods).await,
        Step::Postpone(why) => {
            let reason = EventReason::MaintenancePostponed;
            warn(hands, node, reason, why).await;
            Ok(())
        }
        Step::Fail(why) => {
            let reset = format!("{why}. {}", remedy(node));
            warn(hands, node, EventReason::MaintenanceFailed, &reset).await;
            Ok(())
        }
        Step::Grant(grant) => give(client, events, node, grant).await,
        Step::EndGrant(end) => take_back(client, events, node, *end).await,
        Step::DriverLabel { wanted } => label_driver(client, node, *wanted).await,
        Step::DeleteDriverPod { namespace, name } => delete_pod(client, namespace, name).await,
        Step::ReplaceDriverPod { namespace, name } => {
            replace(client, events, node, namespace, name).await
        }
    }
}

/// What a person does about failed maintenance.
#[must_use]
pub fn remedy(node: &str) -> String {
    format!(
        "No other node gets a grant. Fix the cause, then change the specification or: kubectl annotate --overwrite grn \
         {node} {RESET_ATTEMPTS}=$(date +%s)"
    )
}

/// One round. Who refused is written down after it, for the status and for the next decision.
async fn evict(
    hands: Hands<'_>,
    decision: &Decision,
    pods: &[(String, String)],
) -> Result<(), Error> {
    let node = decision.node.as_str();
    let about = about(hands.client, node).await;
    let mut refused = Vec::new();
    for (namespace, name) in pods {
        if let Some(why) = kube_io::evict(hands.evictions, namespace, name).await? {
            let reason = EventReason::EvictionRefused.as_str();
            let text = why.clone();
            hands.events.warning(&about, reason, "Maintain", text).await;
            refused.push(why);
            continue;
        }
        let text = format!("Evicted {namespace}/{name} from {node} for maintenance.");
        let reason = EventReason::PodEvicted.as_str();
        hands.events.normal(&about, reason, "Evict", text).await;
    }
    let record = decision.record.clone().unwrap_or_default();
    let noted = record.with_refusals(refused);
    if noted == record {
        return Ok(());
    }
    remember(hands.client, node, &noted).await
}

async fn warn(hands: Hands<'_>, node: &str, reason: EventReason, text: &str) {
    let about = about(hands.client, node).await;
    let text = text.to_owned();
    hands
        .events
        .warning(&about, reason.as_str(), "Maintain", text)
        .await;
}

/// The object with its uid, by which people find its events.
async fn about(client: &Client, node: &str) -> ObjectReference {
    let found = Api::<GpuRdmaNode>::all(client.clone()).get_opt(node).await;
    let nameless = || GpuRdmaNode::new(node, GpuRdmaNodeSpec::default());
    let object = found.ok().flatten().unwrap_or_else(nameless);
    object.object_ref(&())
}

async fn give(
    client: &Client,
    events: &Events,
    node: &str,
    grant: &Maintenance,
) -> Result<(), Error> {
    let Some(object) = write_grant(client, node, Some(grant)).await? else {
        return Ok(());
    };
    let text = format!(
        "Granted plan {} to node {node}, attempt {}.",
        grant.granted_plan, grant.attempt
    );
    events
        .normal(
            &object.object_ref(&()),
            EventReason::MaintenanceGranted.as_str(),
            "Grant",
            text,
        )
        .await;
    Ok(())
}

async fn take_back(client: &Client, events: &Events, node: &str, end: End) -> Result<(), Error> {
    let Some(object) = write_grant(client, node, None).await? else {
        return Ok(());
    };
    let (reason, text) = match end {
        End::Completed => (
            EventReason::MaintenanceCompleted,
            "The agent completed the granted plan.",
        ),
        End::HashChanged => (
            EventReason::MaintenanceRevoked,
            "The cluster's specification changed meanwhile.",
        ),
        End::PlanChanged => (
            EventReason::MaintenanceRevoked,
            "The agent published another plan before it began.",
        ),
        End::NotEnforced => (
            EventReason::MaintenanceRevoked,
            "The cluster no longer enforces.",
        ),
        End::Failed => (
            EventReason::MaintenanceRevoked,
            "An action failed as often as its budget allows.",
        ),
        End::TimedOut => (
            EventReason::MaintenanceRevoked,
            "The agent did not begin within spec.upgrade.waitTimeout.",
        ),
        End::Released => (
            EventReason::MaintenanceRevoked,
            "The node left its cluster.",
        ),
    };
    events
        .normal(
            &object.object_ref(&()),
            reason.as_str(),
            "Grant",
            text.to_owned(),
        )
        .await;
    Ok(())
}

/// Writes or clears `spec.maintenance`. The object's uid goes with it: apply would otherwise create what is gone.
async fn write_grant(
    client: &Client,
    node: &str,
    grant: Option<&Maintenance>,
) -> Result<Option<GpuRdmaNode>, Error> {
    let api = Api::<GpuRdmaNode>::all(client.clone());
    let describe = || format!("GpuRdmaNode {node}");
    let Some(object) = api
        .get_opt(node)
        .await
        .map_err(kube_io::failed("read", describe()))?
    else {
        return Ok(None);
    };
    let patch = grant_patch(node, object.uid().as_deref(), grant);
    api.patch(
        node,
        &PatchParams::apply(ROLLOUT_MANAGER),
        &Patch::Apply(patch),
    )
    .await
    .map(Some)
    .map_err(kube_io::failed("grant maintenance to", describe()))
}

/// The whole intent of the rollout's field manager: without a grant it owns nothing of the specification.
#[must_use]
pub fn grant_patch(node: &str, uid: Option<&str>, grant: Option<&Maintenance>) -> Value {
    let spec = grant.map_or_else(|| json!({}), |grant| json!({"maintenance": grant}));
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "GpuRdmaNode",
        "metadata": {"name": node, "uid": uid},
        "spec": spec,
    })
}

/// The label's value is the cluster that has the node now.
async fn label_driver(client: &Client, node: &str, wanted: bool) -> Result<(), Error> {
    let api = Api::<GpuRdmaNode>::all(client.clone());
    let object = api
        .get_opt(node)
        .await
        .map_err(kube_io::failed("read", format!("GpuRdmaNode {node}")))?;
    let value = object.filter(|_| wanted).map(|object| object.spec.cluster);
    kube_io::label_node(client, node, &BTreeMap::from([(DRIVER_LABEL, value)])).await
}

async fn delete_pod(client: &Client, namespace: &str, name: &str) -> Result<(), Error> {
    let api = Api::<Pod>::namespaced(client.clone(), namespace);
    kube_io::delete(&api, name, &DeleteParams::default()).await
}

async fn replace(
    client: &Client,
    events: &Events,
    node: &str,
    namespace: &str,
    name: &str,
) -> Result<(), Error> {
    delete_pod(client, namespace, name).await?;
    let object = Api::<GpuRdmaNode>::all(client.clone()).get_opt(node).await;
    if let Ok(Some(object)) = object {
        let text =
            format!("Deleted driver pod {namespace}/{name}; its successor has the new version.");
        events
            .normal(
                &object.object_ref(&()),
                EventReason::DriverPodRestarted.as_str(),
                "Replace",
                text,
            )
            .await;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
