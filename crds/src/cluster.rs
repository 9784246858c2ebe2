//! `GpuRdmaCluster`: what the admin wants for a group of nodes.

mod device_plugin;
mod driver;
mod status;
mod upgrade;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use device_plugin::{
    DevicePlugin, Inject, MaxDistance, NicSharing, OnNicDown, Resource, ResourceKind, Takeover,
    UnknownDistance,
};
pub use driver::{
    Driver, DriverContainer, DriverSource, HostPackages, PackageRepository, Precompiled,
};
pub use status::{GpuRdmaClusterStatus, NodeSummary, RailLayout, RailSlot};
pub use upgrade::{Upgrade, Workloads};

use crate::fabric::{Fabric, NicRule, Tuning};
use crate::rules;
use crate::schema::{self, is_default};

/// GPU-direct RDMA for a group of nodes.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gpurdma.dev",
    version = "v1alpha1",
    kind = "GpuRdmaCluster",
    doc = "GPU-direct RDMA for a group of nodes.",
    status = "GpuRdmaClusterStatus",
    shortname = "grc",
    category = "gpurdma",
    derive = "PartialEq",
    validation = Rule::new(rules::NAME_RULE).message(rules::NAME_MESSAGE),
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".spec.mode"}"#,
    printcolumn = r#"{"name":"Matched","type":"integer","jsonPath":".status.matched"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"Pairs","type":"integer","jsonPath":".status.pairs"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::spec)]
pub struct GpuRdmaClusterSpec {
    /// How far the operator may go: observe, plan, or act.
    pub mode: Mode,
    /// Stops new actions; what runs goes on.
    pub paused: bool,
    /// Decides between clusters that select the same node: the higher number has it.
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    pub priority: i32,
    /// Nodes of this cluster; empty selects all Linux nodes.
    #[schemars(transform = schema::label_selector)]
    pub node_selector: LabelSelector,
    /// What becomes of the host's settings when the cluster is deleted.
    pub deletion_policy: DeletionPolicy,
    /// The RDMA driver.
    pub driver: Driver,
    /// How GPU memory is made reachable for the NIC.
    #[schemars(transform = schema::no_default)]
    pub gpu_direct: GpuDirect,
    /// Roles of the NICs, first match wins; a NIC that no rule matches is Compute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub nics: Vec<NicRule>,
    /// InfiniBand or RoCE settings.
    #[schemars(transform = schema::no_default)]
    pub fabric: Fabric,
    /// PCIe and RDMA settings of the host.
    #[schemars(transform = schema::no_default)]
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

/// How GPU memory is made reachable for the NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuDirect {
    /// Which way.
    pub mode: GpuDirectMode,
    /// Whether a pair without a GPU-direct path is refused.
    #[serde(skip_serializing_if = "is_default")]
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
