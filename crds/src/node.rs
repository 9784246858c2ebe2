//! `GpuRdmaNode`: what operator and agent tell each other about one node; name = node name, owner = the Node.
//!
//! Field managers: [`crate::names::ASSIGN_MANAGER`] (spec), [`crate::names::ROLLOUT_MANAGER`] (`spec.maintenance`),
//! [`crate::names::AGENT_MANAGER`] (status). None forces another's fields.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::{DevicePlugin, Driver, GpuDirect, Mode};
use crate::fabric::{Fabric, NicRule, Tuning};

/// One node: what it should become, and what it is.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gpurdma.dev",
    version = "v1alpha1",
    kind = "GpuRdmaNode",
    status = "GpuRdmaNodeStatus",
    shortname = "grn",
    category = "gpurdma",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuRdmaNodeSpec {
    /// The cluster that has the node.
    pub cluster: String,
    /// `metadata.uid` of the Node.
    pub node_uid: String,
    /// Mode of the cluster.
    pub mode: Mode,
    /// Whether the cluster is paused.
    pub paused: bool,
    /// Hash of driver, gpuDirect, tuning and fabric.linkLayer.
    pub install_hash: String,
    /// The configuration, resolved for this node.
    pub config: NodeConfig,
    /// What the agent may do that costs traffic or a reboot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
}

/// The configuration of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeConfig {
    /// The RDMA driver.
    pub driver: Driver,
    /// How GPU memory is made reachable.
    pub gpu_direct: GpuDirect,
    /// Roles of the NICs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<NicRule>,
    /// Fabric settings.
    pub fabric: Fabric,
    /// Host tuning.
    pub tuning: Tuning,
    /// What to advertise.
    pub device_plugin: DevicePlugin,
    /// Rail of each NIC, from the operator's rail map.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<NicRail>,
    /// Addresses, allocated by the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
}

/// Rail of a NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NicRail {
    /// PCI address of the NIC.
    pub pci: String,
    /// The rail.
    pub rail: u32,
}

/// An address of the node on a rail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeAddress {
    /// The rail.
    pub rail: u32,
    /// Address with prefix length, `10.10.0.7/16`.
    pub address: String,
}

/// The operator's answer to a plan: what may run now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// The plan that is granted.
    pub granted_plan: String,
    /// The install hash that the grant is for; another one revokes it.
    pub install_hash: String,
    /// Which attempt.
    pub attempt: u32,
}

/// What the agent sees on its node. At most 16 KiB; no volatile values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuRdmaNodeStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Boot id of the running kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Install hash that the agent works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_hash: Option<String>,
    /// Version of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The node at a glance.
    pub phase: Phase,
    /// What the machine is.
    pub summary: MachineSummary,
    /// Pairs as they are, or in Observe and Plan as they would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairStatus>,
    /// What is wrong, worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What the agent would do, or does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// How far granted maintenance is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<MaintenanceStatus>,
    /// `Ready`, `DriverReady`, `GpuDirectReady`, `FabricReady`, `Advertised`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The node at a glance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// The agent has not reported yet.
    #[default]
    Pending,
    /// No GPU or no NIC.
    NotApplicable,
    /// Mode Observe.
    Observed,
    /// Mode Plan.
    Planned,
    /// Free actions run.
    Progressing,
    /// Waits for a grant or for something named in the conditions.
    Waiting,
    /// As the cluster asks.
    Ready,
    /// Something needs a person.
    Degraded,
}

/// What the machine is, in a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSummary {
    /// GPUs seen.
    pub gpus: u32,
    /// RDMA devices seen.
    pub nics: u32,
    /// Pairs that may be handed out.
    pub admitted_pairs: u32,
    /// Product of the GPUs, the first one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_product: Option<String>,
    /// GPU driver version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_driver: Option<String>,
    /// Operating system, `debian 12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Kernel release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Link layer of the compute NICs, `InfiniBand`, `Ethernet` or `Mixed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<String>,
}

/// One pair in a node's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairStatus {
    /// `GPU0`.
    pub gpu: String,
    /// RDMA device names.
    pub nics: Vec<String>,
    /// `PIX`, `PXB`, `PHB`, `NODE`, `SYS` or `UNKNOWN`.
    pub distance: String,
    /// Whether another pair has the same NIC.
    #[serde(default)]
    pub shared: bool,
    /// Whether it may be handed out.
    pub admitted: bool,
    /// Why not; empty where admitted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Something that is wrong or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stable name, `FOREIGN_GPU_ADVERTISER`.
    pub id: String,
    /// How bad.
    pub severity: Severity,
    /// What it is about: a module, a device, a file.
    pub component: String,
    /// What was seen, what is right, and what fixes it.
    pub message: String,
}

/// How bad a finding is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Severity {
    /// Keeps devices from being handed out.
    Error,
    /// Costs bandwidth or will break.
    Warning,
    /// Worth knowing.
    Info,
}

/// What the agent would do, or does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// Hash over the costly actions and the install hash.
    pub hash: String,
    /// The install hash that the plan is for.
    pub install_hash: String,
    /// What it costs: the worst of its actions.
    pub cost: Cost,
    /// The actions, in order.
    pub actions: Vec<ActionStatus>,
}

/// What an action costs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Cost {
    /// Nothing; runs at once.
    #[default]
    None,
    /// Running RDMA jobs would break.
    Traffic,
    /// The node reboots.
    Reboot,
}

/// One action of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionStatus {
    /// Kind of action: `LoadModule`, `SetOpenibConf`, ….
    pub kind: String,
    /// What it acts on.
    pub target: String,
    /// The value that is wanted.
    pub desired: String,
    /// What it costs.
    pub cost: Cost,
    /// Attempts made, of the budget.
    pub attempts: u32,
    /// What it waits for, or why it failed; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How far granted maintenance is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceStatus {
    /// The plan that was granted.
    pub granted_plan: String,
    /// Whether it is done.
    pub completed: bool,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
