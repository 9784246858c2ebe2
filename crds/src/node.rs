//! `GpuRdmaNode`: what operator and agent tell each other about one node; name = node name, owner = the Node.
//!
//! Field managers: [`crate::names::ASSIGN_MANAGER`] (spec), [`crate::names::ROLLOUT_MANAGER`] (`spec.maintenance`),
//! [`crate::names::AGENT_MANAGER`] (status). None forces another's fields.

mod bounded;
mod status;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use bounded::MAX_STATUS_BYTES;
pub use status::{
    ActionStatus, Cost, Finding, GpuRdmaNodeStatus, MachineSummary, MaintenanceStatus, NicStatus,
    OtherAdvertiser, PairStatus, Phase, PlanStatus, Severity,
};

use crate::cluster::{DevicePlugin, Driver, GpuDirect, Mode};
use crate::fabric::{Fabric, NicRule, Tuning};
use crate::schema::is_default;
use crate::{rules, schema};

/// One node: what it should become, and what it is.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gpurdma.dev",
    version = "v1alpha1",
    kind = "GpuRdmaNode",
    doc = "One node: what it should become, and what it is. Written by operator and agent.",
    status = "GpuRdmaNodeStatus",
    shortname = "grn",
    category = "gpurdma",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Cluster","type":"string","jsonPath":".spec.cluster"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"GPUs","type":"integer","jsonPath":".status.summary.gpus"}"#,
    printcolumn = r#"{"name":"NICs","type":"integer","jsonPath":".status.summary.nics"}"#,
    printcolumn = r#"{"name":"Pairs","type":"integer","jsonPath":".status.summary.admittedPairs"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::spec)]
pub struct GpuRdmaNodeSpec {
    /// The cluster that has the node.
    #[schemars(length(max = 40))]
    pub cluster: String,
    /// `metadata.uid` of the Node.
    #[schemars(length(max = 64))]
    pub node_uid: String,
    /// Mode of the cluster.
    pub mode: Mode,
    /// Whether the cluster is paused.
    pub paused: bool,
    /// Hash of driver, gpuDirect, tuning and fabric.linkLayer.
    #[schemars(length(max = 64), regex(pattern = r"^([0-9a-f]{64})?$"))]
    pub install_hash: String,
    /// Whether the agent takes back what it changed on the host, instead of bringing it to the configuration.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(transform = schema::no_default)]
    pub restore: bool,
    /// What the operator has done about another device plugin that hands out the node's GPUs.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(transform = schema::no_default)]
    pub gpu_plugin: GpuPlugin,
    /// The configuration, resolved for this node.
    #[schemars(transform = schema::no_default)]
    pub config: NodeConfig,
    /// What the agent may do that costs traffic or a reboot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
}

/// What the operator has done about another device plugin that hands out the node's GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GpuPlugin {
    /// Nothing: what is found on the node decides.
    #[default]
    AsFound,
    /// It is switched off: once nothing of it is left, it is gone for good.
    SwitchedOff,
    /// It comes back: no device with a GPU is offered any more.
    ComesBack,
}

/// The configuration of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeConfig {
    /// The RDMA driver.
    pub driver: Driver,
    /// How GPU memory is made reachable.
    #[schemars(transform = schema::no_default)]
    pub gpu_direct: GpuDirect,
    /// Roles of the NICs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub nics: Vec<NicRule>,
    /// Fabric settings.
    #[schemars(transform = schema::no_default)]
    pub fabric: Fabric,
    /// Host tuning.
    #[schemars(transform = schema::no_default)]
    pub tuning: Tuning,
    /// What to advertise.
    pub device_plugin: DevicePlugin,
    /// Rail of each NIC, from the operator's rail map.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pci"]))]
    pub rails: Vec<NicRail>,
    /// Addresses, allocated by the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["rail"]))]
    pub addresses: Vec<NodeAddress>,
}

/// Rail of a NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NicRail {
    /// PCI address of the NIC.
    #[schemars(
        length(max = 16),
        regex(pattern = r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
    )]
    pub pci: String,
    /// The rail.
    #[schemars(range(max = 63))]
    pub rail: u32,
}

/// An address of the node on a rail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rules::node_address)]
pub struct NodeAddress {
    /// The rail.
    #[schemars(range(max = 63))]
    pub rail: u32,
    /// Address with prefix length, `10.10.0.7/16`.
    #[schemars(length(max = 64))]
    pub address: String,
}

/// The operator's answer to a plan: what may run now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// The plan that is granted.
    #[schemars(length(max = 64), regex(pattern = r"^[0-9a-f]{64}$"))]
    pub granted_plan: String,
    /// The install hash that the grant is for; another one revokes it.
    #[schemars(length(max = 64), regex(pattern = r"^[0-9a-f]{64}$"))]
    pub install_hash: String,
    /// Which attempt.
    pub attempt: u32,
}
