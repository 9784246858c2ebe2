//! What the device plugin advertises.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;
use crate::schema::is_default;

/// What the device plugin advertises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DevicePlugin {
    /// Whether GPUs of another advertiser are taken over.
    pub takeover: Takeover,
    /// Whether the node goes back to the other advertiser on removal.
    pub give_back: bool,
    /// Extended resources; omitted: `rdma/gpudirect` of kind Pair.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]), transform = rules::resources)]
    pub resources: Vec<Resource>,
    /// What happens to a pair whose NIC is down.
    pub on_nic_down: OnNicDown,
    /// Variables put into containers; the pod's own values win.
    #[serde(skip_serializing_if = "is_default")]
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
#[schemars(transform = rules::resource)]
pub struct Resource {
    /// Extended resource name.
    #[schemars(length(min = 3, max = 253))]
    pub name: String,
    /// What one device is.
    pub kind: ResourceKind,
    /// Farthest NIC that a pair may have.
    pub max_distance: MaxDistance,
    /// What to do where the distance is unknown.
    pub unknown_distance: UnknownDistance,
    /// NICs wanted per GPU.
    #[schemars(range(max = 1024))]
    pub nics_per_gpu: u32,
    /// Whether GPUs may share a NIC.
    pub nic_sharing: NicSharing,
    /// Copies of each NIC, for kind `SharedNic`.
    #[schemars(range(max = 100_000))]
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "one switch for each variable"
)]
pub struct Inject {
    /// `NCCL_TOPO_FILE`.
    #[serde(skip_serializing_if = "is_default")]
    pub nccl_topo_file: bool,
    /// `NCCL_IB_HCA`.
    #[serde(skip_serializing_if = "is_default")]
    pub nccl_ib_hca: bool,
    /// `UCX_NET_DEVICES`.
    #[serde(skip_serializing_if = "is_default")]
    pub ucx_net_devices: bool,
    /// `NVSHMEM_HCA_LIST`.
    #[serde(skip_serializing_if = "is_default")]
    pub nvshmem_hca_list: bool,
}
