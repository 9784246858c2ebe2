//! `operator uninstall`: what `helm uninstall` cannot know of. DaemonSets, node labels, taints and finalizers go;
//! objects, CRDs, driver pods and the hosts' settings stay. Every step may be repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use crds::names::{DRIVER_LABEL, FINALIZER, GPU_PLUGIN_LABEL, PLUGIN_LABEL};
use crds::{GpuRdmaCluster, GpuRdmaNode};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::components::{COMPONENT_LABEL, MANAGED_BY_LABEL, MANAGER};
use crate::facts::{DRIVER_LABELS, NodeFacts, PodFacts};
use crate::gather::by_node;
use crate::install::policy;
use crate::kube_io;
use crate::takeover::{self, View};

const OPERATOR: &str = "gpu-rdma-operator";
/// How long the operator may take to end.
const PATIENCE: Duration = Duration::from_mins(2);

/// Takes away everything that would outlive the release and act on without it.
pub async fn uninstall(namespace: &str) -> anyhow::Result<()> {
    let client = Client::try_default()
        .await
        .context("cannot find the Kubernetes API")?;
    stop_operator(&client, namespace).await?;
    delete_daemon_sets(&client, namespace).await?;
    clean_nodes(&client, namespace).await?;
    give_back(&client, namespace).await?;
    release_clusters(&client).await?;
    delete_policy(&client).await?;
    tracing::info!("uninstalled; GpuRdmaClusters, GpuRdmaNodes and CRDs stay");
    Ok(())
}

/// First, or it would make everything again.
async fn stop_operator(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let api = Api::<Deployment>::namespaced(client.clone(), namespace);
    let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
    match api
        .patch_scale(OPERATOR, &PatchParams::default(), &none)
        .await
    {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        Err(error) => return Err(error).context("cannot scale the operator to zero"),
    }
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let ours = ListParams::default().labels(&format!(
        "{COMPONENT_LABEL}=operator,app.kubernetes.io/name=gpu-rdma"
    ));
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let left = pods
            .list_metadata(&ours)
            .await
            .context("cannot list the operator's pods")?;
        let Some(pod) = left.items.first() else {
            return Ok(());
        };
        if tokio::time::Instant::now() > deadline {
            bail!(
                "pod {} of the operator is still there after {} s",
                pod.name_any(),
                PATIENCE.as_secs()
            );
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Driver pods stay: unloading the driver everywhere at once would take the fabric down.
async fn delete_daemon_sets(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let api = Api::<DaemonSet>::namespaced(client.clone(), namespace);
    let ours = ListParams::default().labels(&format!("{MANAGED_BY_LABEL}={MANAGER}"));
    for set in api.list(&ours).await.context("cannot list DaemonSets")? {
        let driver = set.labels().contains_key(DRIVER_LABEL);
        let params = if driver {
            DeleteParams::orphan()
        } else {
            DeleteParams::background()
        };
        kube_io::delete(&api, &set.name_any(), &params).await?;
    }
    Ok(())
}

async fn clean_nodes(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let drivers = nodes_with_driver(client, namespace).await?;
    let api = Api::<Node>::all(client.clone());
    for node in api
        .list(&ListParams::default())
        .await
        .context("cannot list nodes")?
    {
        let (name, facts) = (node.name_any(), NodeFacts::of(&node));
        let labels = labels_to_remove(&facts, drivers.contains(&name));
        if !labels.is_empty() {
            kube_io::label_node(client, &name, &labels).await?;
        }
        if facts.tainted {
            kube_io::set_taint(client, &name, false).await?;
        }
    }
    Ok(())
}

/// The other device plugins that were switched off come back, where nothing speaks against it any more: our plugins may
/// still be on their way out, and what pods hold is for a person.
async fn give_back(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let waiting = give_back_once(client, namespace).await?;
        if waiting.is_empty() {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            for (node, why) in waiting {
                tracing::warn!(
                    node,
                    label = GPU_PLUGIN_LABEL,
                    "not given back: {why} Set the label to \"true\" then"
                );
            }
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Nodes that are not given back yet, and why.
async fn give_back_once(
    client: &Client,
    namespace: &str,
) -> anyhow::Result<BTreeMap<String, String>> {
    let everything = ListParams::default();
    let nodes = Api::<Node>::all(client.clone()).list(&everything).await;
    let nodes = nodes.context("cannot list nodes")?.items;
    let facts = nodes
        .iter()
        .map(|node| (node.name_any(), NodeFacts::of(node)));
    let taken: Vec<_> = facts
        .filter(|(_, facts)| facts.gpu_plugin_was.is_some())
        .collect();
    let mut waiting = BTreeMap::new();
    if taken.is_empty() {
        return Ok(waiting);
    }
    let pods = Api::<Pod>::all(client.clone()).list(&everything).await;
    let pods: Vec<_> = pods
        .context("cannot list pods")?
        .items
        .into_iter()
        .map(Arc::new)
        .collect();
    let pods = by_node(&pods, namespace);
    let objects = Api::<GpuRdmaNode>::all(client.clone());
    for (name, facts) in &taken {
        let object = objects.get_opt(name).await.unwrap_or_default();
        let view = View {
            name,
            facts,
            object: object.as_ref(),
            pods: pods.get(name).map(Vec::as_slice).unwrap_or_default(),
        };
        let Some(step) = takeover::leaving(&view, None) else {
            continue;
        };
        match (step.switch, step.standing) {
            (Some(switch), _) => kube_io::switch_gpu_plugin(client, &switch).await?,
            (None, Some(standing)) => drop(waiting.insert(name.clone(), standing.message)),
            (None, None) => {}
        }
    }
    Ok(waiting)
}

/// Nodes with a driver pod that stays.
async fn nodes_with_driver(client: &Client, namespace: &str) -> anyhow::Result<BTreeSet<String>> {
    let labels = DRIVER_LABELS.map(|(label, value)| format!("{label}={value}"));
    let ours = ListParams::default().labels(&labels.join(","));
    let pods = Api::<Pod>::namespaced(client.clone(), namespace)
        .list(&ours)
        .await
        .context("cannot list driver pods")?;
    let facts = pods.iter().filter_map(PodFacts::of);
    Ok(facts.map(|pod| pod.node).collect())
}

/// Our labels that a node has. The driver's stays beside a driver pod: a new DaemonSet of that name would otherwise
/// find pods on nodes that it does not select, and end them all at once.
fn labels_to_remove(node: &NodeFacts, has_driver: bool) -> BTreeMap<&'static str, Option<String>> {
    let ours = [PLUGIN_LABEL, DRIVER_LABEL]
        .into_iter()
        .filter(|label| node.labels.contains_key(*label))
        .filter(|label| !(has_driver && *label == DRIVER_LABEL));
    ours.map(|label| (label, None)).collect()
}

async fn release_clusters(client: &Client) -> anyhow::Result<()> {
    let api = Api::<GpuRdmaCluster>::all(client.clone());
    let clusters = match api.list_metadata(&ListParams::default()).await {
        Ok(clusters) => clusters,
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        Err(error) => return Err(error).context("cannot list GpuRdmaClusters"),
    };
    for cluster in clusters {
        let Some(patch) =
            finalizer_patch(cluster.finalizers(), cluster.resource_version().as_deref())
        else {
            continue;
        };
        let name = cluster.name_any();
        api.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .with_context(|| format!("cannot take the finalizer from GpuRdmaCluster {name}"))?;
    }
    Ok(())
}

/// The finalizers without ours, for the version that was read.
fn finalizer_patch(finalizers: &[String], version: Option<&str>) -> Option<Value> {
    let rest: Vec<_> = finalizers
        .iter()
        .filter(|finalizer| *finalizer != FINALIZER)
        .collect();
    let ours = rest.len() < finalizers.len();
    ours.then(|| json!({"metadata": {"finalizers": rest, "resourceVersion": version}}))
}

async fn delete_policy(client: &Client) -> anyhow::Result<()> {
    let params = DeleteParams::default();
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(client.clone());
    kube_io::delete(&bindings, policy::NAME, &params).await?;
    let policies = Api::<ValidatingAdmissionPolicy>::all(client.clone());
    kube_io::delete(&policies, policy::NAME, &params).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
