//! `GpuRdmaCluster`: what the admin wants for a group of nodes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fabric::{Fabric, NicRule, Tuning};

/// GPU-direct RDMA for a group of nodes.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gpurdma.dev",
    version = "v1alpha1",
    kind = "GpuRdmaCluster",
    status = "GpuRdmaClusterStatus",
    shortname = "grc",
    category = "gpurdma",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuRdmaClusterSpec {
    /// How far the operator may go: observe, plan, or act.
    pub mode: Mode,
    /// Stops new actions; what runs goes on.
    pub paused: bool,
    /// Decides between clusters that select the same node: the higher number has it.
    pub priority: i32,
    /// Nodes of this cluster; empty selects all Linux nodes.
    pub node_selector: LabelSelector,
    /// What becomes of the host's settings when the cluster is deleted.
    pub deletion_policy: DeletionPolicy,
    /// The RDMA driver.
    pub driver: Driver,
    /// How GPU memory is made reachable for the NIC.
    pub gpu_direct: GpuDirect,
    /// Roles of the NICs, first match wins; a NIC that no rule matches is Compute.
    pub nics: Vec<NicRule>,
    /// InfiniBand or RoCE settings.
    pub fabric: Fabric,
    /// PCIe and RDMA settings of the host.
    pub tuning: Tuning,
    /// What the device plugin advertises.
    pub device_plugin: DevicePlugin,
    /// How changes roll over the nodes.
    pub upgrade: Upgrade,
}

/// How far the operator may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// Facts, verdicts, findings and pairs as they would be; writes nothing to a host.
    #[default]
    Observe,
    /// Publishes plans, runs none.
    Plan,
    /// Acts.
    Enforce,
}

/// What becomes of the host's settings when the cluster is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Host settings and running pods stay.
    #[default]
    Retain,
    /// What the agent changed is changed back, through plan and grant.
    Restore,
}

/// The RDMA driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Driver {
    /// Where the driver comes from.
    pub source: DriverSource,
    /// The driver container, for source `Container`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<DriverContainer>,
    /// The packages, for source `HostPackages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_packages: Option<HostPackages>,
    /// Keys to set in `/etc/infiniband/openib.conf`; comments and other keys stay.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub openib_conf: BTreeMap<String, String>,
    /// Kernel modules to have loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
}

/// Where the RDMA driver comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DriverSource {
    /// Whatever runs is accepted; its modules are never loaded or unloaded.
    #[default]
    Existing,
    /// A driver container on each node.
    Container,
    /// Packages of the host's distribution.
    HostPackages,
}

/// A driver container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriverContainer {
    /// Repository, such as `nvcr.io/nvidia/mellanox`.
    pub repository: String,
    /// Image name, such as `doca-driver`.
    pub image: String,
    /// Image tag or version.
    pub version: String,
    /// Whether a precompiled image is used.
    #[serde(default)]
    pub precompiled: Precompiled,
    /// Environment of the container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Pull secrets in the operator's namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<String>,
}

/// Whether a precompiled driver image is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Precompiled {
    /// Where there is one for the kernel.
    #[default]
    Prefer,
    /// Only.
    Require,
    /// Never.
    Never,
}

/// Packages of the host's distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPackages {
    /// Version to have installed.
    pub version: String,
    /// Package names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Signed repositories to install from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<PackageRepository>,
}

/// A signed package repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageRepository {
    /// `https://…`.
    pub url: String,
    /// Signing key: armoured text or an `https://` URL.
    pub signing_key: String,
    /// Suite, for apt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Components, for apt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
}

/// How GPU memory is made reachable for the NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuDirect {
    /// Which way.
    pub mode: GpuDirectMode,
    /// Whether a pair without a GPU-direct path is refused.
    pub required: bool,
}

/// Which way GPU memory is made reachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GpuDirectMode {
    /// Leaves what is there.
    #[default]
    Keep,
    /// DMA-BUF where the node offers it, else nvidia-peermem.
    Auto,
    /// DMA-BUF.
    DmaBuf,
    /// nvidia-peermem.
    Peermem,
}

/// What the device plugin advertises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DevicePlugin {
    /// Whether GPUs of another advertiser are taken over.
    pub takeover: Takeover,
    /// Whether the node goes back to the other advertiser on removal.
    pub give_back: bool,
    /// Extended resources; omitted: `rdma/gpudirect` of kind Pair.
    pub resources: Vec<Resource>,
    /// What happens to a pair whose NIC is down.
    pub on_nic_down: OnNicDown,
    /// Variables put into containers; the pod's own values win.
    pub inject: Inject,
}

impl Default for DevicePlugin {
    fn default() -> Self {
        Self {
            takeover: Takeover::Never,
            give_back: true,
            resources: vec![Resource::default()],
            on_nic_down: OnNicDown::Unhealthy,
            inject: Inject::default(),
        }
    }
}

/// Whether GPUs of another advertiser are taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Takeover {
    /// A foreign advertiser keeps its GPUs; nothing is advertised beside it.
    #[default]
    Never,
    /// Node by node, once free.
    Adopt,
}

/// One extended resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    /// Extended resource name.
    pub name: String,
    /// What one device is.
    pub kind: ResourceKind,
    /// Farthest NIC that a pair may have.
    pub max_distance: MaxDistance,
    /// What to do where the distance is unknown.
    pub unknown_distance: UnknownDistance,
    /// NICs wanted per GPU.
    pub nics_per_gpu: u32,
    /// Whether GPUs may share a NIC.
    pub nic_sharing: NicSharing,
    /// Copies of each NIC, for kind SharedNic.
    pub replicas: u32,
}

impl Default for Resource {
    fn default() -> Self {
        Self {
            name: "rdma/gpudirect".to_owned(),
            kind: ResourceKind::Pair,
            max_distance: MaxDistance::Pxb,
            unknown_distance: UnknownDistance::TopologyFile,
            nics_per_gpu: 1,
            nic_sharing: NicSharing::WhenScarce,
            replicas: 1,
        }
    }
}

/// What one device of a resource is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResourceKind {
    /// A GPU and its closest NICs.
    #[default]
    Pair,
    /// A GPU that no pair has.
    Gpu,
    /// One of several copies of a NIC.
    SharedNic,
}

/// Farthest NIC that a pair may have, as `nvidia-smi topo` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum MaxDistance {
    /// At most one PCIe switch.
    Pix,
    /// Several PCIe switches.
    #[default]
    Pxb,
    /// One host bridge.
    Phb,
    /// One NUMA node.
    Node,
    /// Anything.
    Sys,
}

/// What to do where the distance is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnknownDistance {
    /// Believe a topology file; without one, no pair.
    #[default]
    TopologyFile,
    /// Never a pair.
    Refuse,
    /// Pair by index order, and say so.
    ByOrder,
}

/// Whether GPUs may share a NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NicSharing {
    /// Only where GPUs outnumber the NICs within reach.
    #[default]
    WhenScarce,
    /// Never.
    Never,
}

/// What happens to a pair whose NIC is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnNicDown {
    /// The pair turns Unhealthy.
    #[default]
    Unhealthy,
    /// The pair stays, for its GPU.
    KeepGpu,
}

/// Variables put into containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Inject {
    /// `NCCL_TOPO_FILE`.
    pub nccl_topo_file: bool,
    /// `NCCL_IB_HCA`.
    pub nccl_ib_hca: bool,
    /// `UCX_NET_DEVICES`.
    pub ucx_net_devices: bool,
    /// `NVSHMEM_HCA_LIST`.
    pub nvshmem_hca_list: bool,
}

/// How changes roll over the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Upgrade {
    /// Nodes under maintenance at a time: a number or a percentage.
    pub max_unavailable: k8s_openapi::apimachinery::pkg::util::intstr::IntOrString,
    /// What happens to pods that hold our resources.
    pub workloads: Workloads,
    /// How long to wait for them, such as `30m`; omitted: for ever, shown in status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_timeout: Option<String>,
}

impl Default for Upgrade {
    fn default() -> Self {
        Self {
            max_unavailable: k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(1),
            workloads: Workloads::Wait,
            wait_timeout: None,
        }
    }
}

/// What happens to pods that hold our resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Workloads {
    /// They are waited for.
    #[default]
    Wait,
    /// They are evicted, within their disruption budgets.
    Evict,
}

/// What the operator saw of the cluster's nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuRdmaClusterStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Nodes that the selector matches.
    pub matched: u32,
    /// Nodes that another cluster has.
    pub conflicting: u32,
    /// Nodes without a GPU or without a NIC: in no count below.
    pub not_applicable: u32,
    /// Nodes that reached what the cluster asks for.
    pub ready: u32,
    /// GPU+NIC pairs admitted on all nodes.
    pub pairs: u32,
    /// Nodes that are not ready and why, the first hundred by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeSummary>,
    /// `Ready`, `Progressing`, `Degraded`, `Conflict`, `NotYetSupported`, `Paused`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One node in a cluster's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// Node name.
    pub name: String,
    /// Reason, a condition reason of the node.
    pub reason: String,
    /// What is wrong and what to do.
    pub message: String,
}
