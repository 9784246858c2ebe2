//! The DaemonSets: a table of components, built by one pipeline. Pure. Each row says when it is wanted and how its pod
//! looks; names, labels and hashes are the same for all.

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy};
use k8s_openapi::api::core::v1::{NodeSelectorTerm, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

use crate::config::Config;
use crate::validate::Cluster;

pub(crate) mod affinity;
mod agent;
mod driver;
mod plugin;
mod pod;

/// Label that says which product an object belongs to.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Its value.
pub const NAME: &str = "gpu-rdma";
/// Label that says which component an object belongs to.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// Label of everything that the operator made: what is pruned.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Its value.
pub const MANAGER: &str = "gpu-rdma-operator";
/// Annotation of a pod template: the hash of its specification.
pub const TEMPLATE_HASH: &str = "gpurdma.dev/template-hash";
/// Annotation of a DaemonSet: the hash of what was applied last.
pub const APPLIED_HASH: &str = "gpurdma.dev/applied-hash";

/// Value of [`COMPONENT_LABEL`] of a driver.
pub const DRIVER_ROLE: &str = "driver";
/// Component label of the device plugin's pods.
pub const PLUGIN_ROLE: &str = "plugin";

/// Name of the agent's DaemonSet.
pub const AGENT: &str = "gpu-rdma-agent";
/// Name of the plugin's DaemonSet.
pub const PLUGIN: &str = "gpu-rdma-device-plugin";

/// What the DaemonSets are made from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The operator's namespace.
    pub namespace: &'a str,
    /// The operator's configuration.
    pub config: &'a Config,
    /// Clusters that stay, by name.
    pub clusters: &'a [&'a Cluster],
    /// Nodes that the agent keeps beside those of the clusters: a cluster that makes no sense at present lends no
    /// selector.
    pub kept: &'a [NodeSelectorTerm],
    /// Whether any node shall have the plugin.
    pub plugin_wanted: bool,
}

/// One row: a component and its pod.
struct Component {
    /// Name of the DaemonSet.
    name: String,
    /// Value of [`COMPONENT_LABEL`].
    role: &'static str,
    /// Labels beside the common ones.
    labels: Vec<(&'static str, String)>,
    /// How pods are replaced.
    strategy: DaemonSetUpdateStrategy,
    /// The pod.
    pod: PodSpec,
}

/// Name of a cluster's driver DaemonSet.
#[must_use]
pub fn driver_name(cluster: &str) -> String {
    format!("gpu-rdma-driver-{cluster}")
}

/// Every DaemonSet that shall exist, in the order of the table.
#[must_use]
pub fn daemon_sets(inputs: &Inputs<'_>) -> Vec<DaemonSet> {
    table(inputs)
        .into_iter()
        .map(|component| render(component, inputs.namespace))
        .collect()
}

fn table(inputs: &Inputs<'_>) -> Vec<Component> {
    let mut rows = Vec::new();
    if !inputs.clusters.is_empty() || !inputs.kept.is_empty() {
        rows.push(agent::component(inputs));
    }
    if inputs.plugin_wanted {
        rows.push(plugin::component(inputs));
    }
    rows.extend(
        inputs
            .clusters
            .iter()
            .filter_map(|cluster| driver::component(inputs, cluster)),
    );
    rows
}

fn render(component: Component, namespace: &str) -> DaemonSet {
    let Component {
        name,
        role,
        labels,
        strategy,
        pod,
    } = component;
    let mut selector = BTreeMap::from([
        (NAME_LABEL.to_owned(), NAME.to_owned()),
        (COMPONENT_LABEL.to_owned(), role.to_owned()),
    ]);
    selector.extend(
        labels
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value)),
    );
    let mut all = selector.clone();
    all.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
    let template_hash = BTreeMap::from([(TEMPLATE_HASH.to_owned(), hash(&pod))]);
    let spec = DaemonSetSpec {
        revision_history_limit: Some(3),
        selector: LabelSelector {
            match_labels: Some(selector),
            match_expressions: None,
        },
        update_strategy: Some(strategy),
        template: PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(all.clone()),
                annotations: Some(template_hash),
                ..ObjectMeta::default()
            }),
            spec: Some(pod),
        },
        ..DaemonSetSpec::default()
    };
    sealed(DaemonSet {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: Some(all),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    })
}

/// With the hash of all of it as an annotation: what was applied is known without comparing defaulted fields.
fn sealed(mut daemon_set: DaemonSet) -> DaemonSet {
    let hash = hash(&daemon_set);
    daemon_set.metadata.annotations = Some(BTreeMap::from([(APPLIED_HASH.to_owned(), hash)]));
    daemon_set
}

/// Hash of the template of a rendered DaemonSet.
#[must_use]
pub fn template_hash(daemon_set: &DaemonSet) -> Option<&str> {
    let template = &daemon_set.spec.as_ref()?.template;
    template
        .metadata
        .as_ref()?
        .annotations
        .as_ref()?
        .get(TEMPLATE_HASH)
        .map(String::as_str)
}

/// The first 16 hexadecimal digits of the sha256 of a value's JSON. The types are structs and sorted maps, so the same
/// value gives the same bytes.
pub(crate) fn hash(value: &impl Serialize) -> String {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    let digest = Sha256::digest(bytes);
    let first = digest.iter().take(8);
    let number = first.fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{number:016x}")
}

#[cfg(test)]
mod tests;
