//! Carries out the steps of [`crate::rollout`]: taints, grants, driver labels and driver pods.

use std::collections::BTreeMap;

use crds::GpuRdmaNode;
use crds::names::{DRIVER_LABEL, GROUP, ROLLOUT_MANAGER};
use crds::node::Maintenance;
use crds::reasons::EventReason;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::error::Error;
use crate::events::Events;
use crate::kube_io;
use crate::rollout::{Decision, End, Step};

/// Takes the steps of one node, in order, and says how many.
pub async fn carry_out(
    client: &Client,
    events: &Events,
    decision: &Decision,
) -> Result<usize, Error> {
    for step in &decision.steps {
        take(client, events, &decision.node, step).await?;
    }
    Ok(decision.steps.len())
}

async fn take(client: &Client, events: &Events, node: &str, step: &Step) -> Result<(), Error> {
    tracing::info!(node, ?step, "maintenance");
    match step {
        Step::Taint => kube_io::set_taint(client, node, true).await,
        Step::Untaint => kube_io::set_taint(client, node, false).await,
        Step::Grant(grant) => give(client, events, node, grant).await,
        Step::EndGrant(end) => take_back(client, events, node, *end).await,
        Step::DriverLabel { wanted } => label_driver(client, node, *wanted).await,
        Step::DeleteDriverPod { namespace, name } => delete_pod(client, namespace, name).await,
        Step::ReplaceDriverPod { namespace, name } => {
            replace(client, events, node, namespace, name).await
        }
    }
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
