//! What the agent reports about its node.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fabric::{LinkLayer, NicRole, NicTraits};
use crate::schema::{self, is_default};

/// What the agent sees on its node. At most 16 KiB; no volatile values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::status)]
pub struct GpuRdmaNodeStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Boot id of the running kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub boot_id: Option<String>,
    /// Install hash that the agent works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub install_hash: Option<String>,
    /// Version of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub agent_version: Option<String>,
    /// The node at a glance.
    pub phase: Phase,
    /// What the machine is.
    pub summary: MachineSummary,
    /// Pairs as they are, or in Observe and Plan as they would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["gpu"]))]
    pub pairs: Vec<PairStatus>,
    /// RDMA devices with a PCI address, in the order of those; without virtual functions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pci"]))]
    pub nics: Vec<NicStatus>,
    /// Addresses within `fabric.addresses` that this node or its links have and that the operator did not give it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 64)))]
    pub addresses_in_use: Vec<String>,
    /// Device plugins of others that hand out GPUs of this node, or did minutes ago.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["resource"]))]
    pub other_advertisers: Vec<OtherAdvertiser>,
    /// What is wrong, worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub findings: Vec<Finding>,
    /// What the agent would do, or does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// How far granted maintenance is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<MaintenanceStatus>,
    /// `Ready`, `DriverReady`, `GpuDirectReady`, `FabricReady`, `Advertised`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
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
    #[schemars(length(max = 128))]
    pub gpu_product: Option<String>,
    /// GPU driver version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub gpu_driver: Option<String>,
    /// Operating system, `debian 12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub os: Option<String>,
    /// Kernel release.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub kernel: Option<String>,
    /// Link layer of the compute NICs, `InfiniBand`, `Ethernet` or `Mixed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub link_layer: Option<String>,
}

/// One pair in a node's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairStatus {
    /// `GPU0`.
    #[schemars(length(max = 64))]
    pub gpu: String,
    /// RDMA device names.
    #[schemars(length(max = 16), inner(length(max = 64)))]
    pub nics: Vec<String>,
    /// `PIX`, `PXB`, `PHB`, `NODE`, `SYS` or `UNKNOWN`.
    #[schemars(length(max = 16))]
    pub distance: String,
    /// Whether another pair has the same NIC.
    #[serde(default)]
    pub shared: bool,
    /// Whether it may be handed out.
    pub admitted: bool,
    /// Why not; empty where admitted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub reason: String,
}

/// One RDMA device in a node's status. What depends on the state of a link is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NicStatus {
    /// PCI address.
    #[schemars(
        length(max = 16),
        regex(pattern = r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
    )]
    pub pci: String,
    /// RDMA device name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rdma: Option<String>,
    /// PCI vendor and device, `15b3:1021`; omitted where unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub product: Option<String>,
    /// Network interfaces of the same function.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 16)))]
    pub netdevs: Vec<String>,
    /// What it is used for; omitted where Compute.
    #[serde(default, skip_serializing_if = "is_default")]
    pub role: NicRole,
    /// Link layers of its ports; empty where unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub link_layers: Vec<LinkLayer>,
    /// The highest rate in Gb/s that it was seen to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Its rail; omitted where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 63))]
    pub rail: Option<u32>,
}

impl NicStatus {
    /// What rules look at.
    #[must_use]
    pub fn traits(&self) -> NicTraits<'_> {
        NicTraits {
            pci: Some(&self.pci),
            netdevs: &self.netdevs,
            rdma: self.rdma.as_deref(),
            link_layers: &self.link_layers,
            rate: self.rate,
        }
    }
}

/// A device plugin of someone else that hands out GPUs of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OtherAdvertiser {
    /// Extended resource, `nvidia.com/gpu`.
    #[schemars(length(max = 253))]
    pub resource: String,
    /// GPUs that it names.
    pub gpus: u32,
    /// Whether it hands out parts of GPUs: MIG devices, or copies for time slicing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partitioned: bool,
}

/// Something that is wrong or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stable name, `FOREIGN_GPU_ADVERTISER`.
    #[schemars(length(max = 64))]
    pub id: String,
    /// How bad.
    pub severity: Severity,
    /// What it is about: a module, a device, a file.
    #[schemars(length(max = 256))]
    pub component: String,
    /// What was seen, what is right, and what fixes it.
    #[schemars(length(max = 1024))]
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
    #[schemars(length(max = 64))]
    pub hash: String,
    /// The install hash that the plan is for.
    #[schemars(length(max = 64))]
    pub install_hash: String,
    /// What it costs: the worst of its actions.
    pub cost: Cost,
    /// The actions, in order.
    #[schemars(length(max = 128))]
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
    #[schemars(length(max = 64))]
    pub kind: String,
    /// What it acts on.
    #[schemars(length(max = 512))]
    pub target: String,
    /// The value that is wanted.
    #[schemars(length(max = 1024))]
    pub desired: String,
    /// What it costs.
    pub cost: Cost,
    /// Attempts made, of the budget.
    pub attempts: u32,
    /// Whether the budget is used up: only another specification or a person's annotation gives it new attempts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exhausted: bool,
    /// What it waits for, or why it failed; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// How far granted maintenance is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceStatus {
    /// The plan that was granted.
    #[schemars(length(max = 64))]
    pub granted_plan: String,
    /// Whether it is done.
    pub completed: bool,
    /// When its first costly action began; omitted while none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}
