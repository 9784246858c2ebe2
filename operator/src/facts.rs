//! What the operator needs to know of nodes and pods, and nothing more. Pure. [`crate::stores`] strips objects before
//! they are cached, so that five thousand nodes stay small; [`crate::gather`] makes facts of what is cached.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crds::names::{DO_NOT_DISRUPT, DRIVER_LABEL, GPU_PLUGIN_WAS, MAINTENANCE_TAINT};
use k8s_openapi::api::core::v1::{
    Container, Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, Pod, PodCondition, PodSpec,
    PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

use crate::components::{
    COMPONENT_LABEL, DRIVER_ROLE, MANAGED_BY_LABEL, MANAGER, NAME, NAME_LABEL, PLUGIN_ROLE,
    TEMPLATE_HASH,
};
use crate::quantity;
use crate::rollout::Stays;

/// Labels of a driver pod of ours. Anyone may give a pod such labels: its namespace counts as well
/// ([`crate::gather::by_node`]).
pub const DRIVER_LABELS: [(&str, &str); 3] = [
    (NAME_LABEL, NAME),
    (MANAGED_BY_LABEL, MANAGER),
    (COMPONENT_LABEL, DRIVER_ROLE),
];

/// Annotation of a pod that the kubelet runs from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A node, as far as assignment and maintenance need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeFacts {
    /// `metadata.uid`.
    pub uid: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// What the label of the other device plugin said before it was switched off here.
    pub gpu_plugin_was: Option<String>,
    /// Whether it has our maintenance taint.
    pub tainted: bool,
    /// Whether someone cordoned it.
    pub cordoned: bool,
    /// Whether its Ready condition is there and not true. A node that has none yet has not been heard of.
    pub not_ready: bool,
    /// Its own addresses.
    pub addresses: BTreeSet<IpAddr>,
}

impl NodeFacts {
    /// The facts of a node.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        let taints = node
            .spec
            .as_ref()
            .and_then(|spec| spec.taints.as_deref())
            .unwrap_or_default();
        Self {
            uid: node.uid().unwrap_or_default(),
            labels: node.labels().clone(),
            gpu_plugin_was: node.annotations().get(GPU_PLUGIN_WAS).cloned(),
            tainted: taints.iter().any(|taint| taint.key == MAINTENANCE_TAINT),
            cordoned: node
                .spec
                .as_ref()
                .is_some_and(|spec| spec.unschedulable == Some(true)),
            not_ready: readiness(node).is_some_and(|ready| ready.status != "True"),
            addresses: own_addresses(node)
                .filter_map(|one| one.address.parse().ok())
                .collect(),
        }
    }
}

fn own_addresses(node: &Node) -> impl Iterator<Item = &NodeAddress> {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_deref());
    addresses
        .unwrap_or_default()
        .iter()
        .filter(|one| matches!(one.type_.as_str(), "InternalIP" | "ExternalIP"))
}

fn readiness(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_deref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
}

/// A pod that is on a node and has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodFacts {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The node it is on.
    pub node: String,
    /// Extended resources that its containers ask for.
    pub resources: BTreeSet<String>,
    /// What it is to a driver DaemonSet, where its labels are those of a driver pod of ours.
    pub driver: Option<DriverPod>,
    /// Whether its labels are those of a device plugin of ours.
    pub plugin: bool,
    /// Why maintenance must not evict it.
    pub stays: Option<Stays>,
}

/// A pod of a driver DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DriverPod {
    /// Cluster whose DaemonSet made it.
    pub cluster: String,
    /// Hash of the template that it was made from.
    pub template_hash: String,
    /// Whether its driver is loaded.
    pub ready: bool,
    /// Whether it is on its way out.
    pub deleting: bool,
}

impl PodFacts {
    /// The facts of a pod; none while it has no node, and none once it has ended.
    #[must_use]
    pub fn of(pod: &Pod) -> Option<Self> {
        let node = pod.spec.as_ref()?.node_name.clone()?;
        if matches!(phase(pod), Some("Succeeded" | "Failed")) {
            return None;
        }
        Some(Self {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            node,
            resources: extended_resources(pod),
            driver: driver_pod(pod),
            plugin: is_ours(pod, PLUGIN_ROLE),
            stays: stays(pod),
        })
    }

    /// Whether it asks for devices, or is a driver or a device plugin.
    #[must_use]
    pub fn is_relevant(&self) -> bool {
        !self.resources.is_empty() || self.driver.is_some() || self.plugin
    }

    /// `namespace/name`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

fn stays(pod: &Pod) -> Option<Stays> {
    let asked = pod.annotations().get(DO_NOT_DISRUPT);
    if pod.metadata.deletion_timestamp.is_some() {
        Some(Stays::Ending)
    } else if pod.annotations().contains_key(MIRROR) {
        Some(Stays::Mirror)
    } else if pod.owner_references().iter().any(is_daemon_set) {
        Some(Stays::DaemonSet)
    } else {
        asked
            .filter(|value| *value == "true")
            .map(|_| Stays::DoNotDisrupt)
    }
}

fn is_daemon_set(owner: &OwnerReference) -> bool {
    owner.kind == "DaemonSet" && owner.controller == Some(true)
}

/// The driver pod among the pods of a node.
#[must_use]
pub fn driver_among(pods: &[PodFacts]) -> Option<(&PodFacts, &DriverPod)> {
    pods.iter()
        .find_map(|pod| pod.driver.as_ref().map(|driver| (pod, driver)))
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Resource names with a domain: what device plugins advertise. Asking for none of a resource holds nothing.
fn extended_resources(pod: &Pod) -> BTreeSet<String> {
    containers(pod)
        .filter_map(|container| container.resources.as_ref())
        .flat_map(|resources| [resources.requests.as_ref(), resources.limits.as_ref()])
        .flatten()
        .flatten()
        .filter(|(name, amount)| name.contains('/') && quantity::is_positive(&amount.0))
        .map(|(name, _)| name.clone())
        .collect()
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.as_ref();
    let init = spec
        .and_then(|spec| spec.init_containers.as_deref())
        .unwrap_or_default();
    spec.map(|spec| spec.containers.as_slice())
        .unwrap_or_default()
        .iter()
        .chain(init)
}

fn driver_pod(pod: &Pod) -> Option<DriverPod> {
    if !is_ours(pod, DRIVER_ROLE) {
        return None;
    }
    Some(DriverPod {
        cluster: pod.labels().get(DRIVER_LABEL).cloned().unwrap_or_default(),
        template_hash: pod
            .annotations()
            .get(TEMPLATE_HASH)
            .cloned()
            .unwrap_or_default(),
        ready: is_ready(pod),
        deleting: pod.metadata.deletion_timestamp.is_some(),
    })
}

/// Whether a pod's labels are those of a component of ours.
fn is_ours(pod: &Pod, component: &str) -> bool {
    let has = |key: &str, value: &str| pod.labels().get(key).is_some_and(|is| is == value);
    has(NAME_LABEL, NAME) && has(MANAGED_BY_LABEL, MANAGER) && has(COMPONENT_LABEL, component)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Drops from a node what nobody here reads.
pub fn strip_node(node: &mut Node) {
    node.metadata.managed_fields = None;
    node.annotations_mut()
        .retain(|key, _| key == GPU_PLUGIN_WAS);
    let ready = readiness(node).map(|ready| NodeCondition {
        type_: ready.type_.clone(),
        status: ready.status.clone(),
        ..NodeCondition::default()
    });
    let addresses: Vec<_> = own_addresses(node).cloned().collect();
    let status = NodeStatus {
        conditions: ready.map(|ready| vec![ready]),
        addresses: (!addresses.is_empty()).then_some(addresses),
        ..NodeStatus::default()
    };
    node.status = (status != NodeStatus::default()).then_some(status);
    node.spec = node.spec.take().map(|spec| NodeSpec {
        taints: spec.taints,
        unschedulable: spec.unschedulable,
        ..NodeSpec::default()
    });
}

/// Drops from a pod what nobody here reads.
pub fn strip_pod(pod: &mut Pod) {
    let ready = is_ready(pod);
    let phase = pod.status.take().and_then(|status| status.phase);
    pod.annotations_mut()
        .retain(|key, _| [TEMPLATE_HASH, MIRROR, DO_NOT_DISRUPT].contains(&key.as_str()));
    pod.labels_mut().retain(|key, _| {
        key == DRIVER_LABEL || DRIVER_LABELS.iter().any(|(label, _)| key == label)
    });
    pod.metadata.managed_fields = None;
    pod.owner_references_mut().retain(is_daemon_set);
    pod.spec = pod.spec.take().map(stripped_spec);
    let condition = PodCondition {
        type_: "Ready".into(),
        status: "True".into(),
        ..PodCondition::default()
    };
    pod.status = Some(PodStatus {
        phase,
        conditions: ready.then(|| vec![condition]),
        ..PodStatus::default()
    });
}

fn stripped_spec(spec: PodSpec) -> PodSpec {
    let strip = |containers: Vec<Container>| {
        containers
            .into_iter()
            .map(|container| Container {
                resources: container.resources,
                ..Container::default()
            })
            .collect::<Vec<_>>()
    };
    PodSpec {
        node_name: spec.node_name,
        containers: strip(spec.containers),
        init_containers: spec.init_containers.map(strip),
        ..PodSpec::default()
    }
}

#[cfg(test)]
mod tests;
