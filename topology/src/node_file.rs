//! The node file `/run/gpurdma/node.json`: all that the device plugin knows. The agent writes it, the plugin reads it.
//!
//! `schema` is `MAJOR.MINOR`. A reader refuses another major and, at its own or a lower minor, unknown fields; at a
//! higher minor it ignores them, so that an agent at N serves a plugin at N−1. A file of a lower minor lacks the fields that
//! came later, so that an agent at N reads what it wrote at N−1. That check is [`NodeFile::parse`]'s:
//! serde alone can only do one of the two.

use serde::{Deserialize, Serialize};

use crate::distance::Distance;
use crate::policy::ResourceKind;

mod codec;
mod devices;

pub use codec::NodeFileError;
pub use devices::devices;

/// The schema that this code writes.
pub const SCHEMA: &str = "1.2";

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFile {
    /// `MAJOR.MINOR`.
    pub schema: String,
    /// `/proc/sys/kernel/random/boot_id` at the time of writing: a file of another boot admits nothing.
    pub boot_id: String,
    /// `metadata.uid` of the Node.
    pub node_uid: String,
    /// `metadata.generation` of the `GpuRdmaNode` that this file carries out.
    pub generation: i64,
    /// The operator's hash of what is installed.
    pub install_hash: String,
    /// Resources in the order of their name.
    pub resources: Vec<NodeResource>,
}

/// One extended resource of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResource {
    /// Extended resource name.
    pub name: String,
    /// What one device is.
    pub kind: ResourceKind,
    /// Seconds that a port must be down before its device turns Unhealthy.
    pub hold_down_seconds: u32,
    /// Seconds that a port must be up before its device turns Healthy again.
    pub stable_up_seconds: u32,
    /// Whether a device whose NIC is down turns Unhealthy (`false`: the GPU is kept).
    pub unhealthy_on_nic_down: bool,
    /// Environment for every container that gets a device, in the order of the names.
    pub envs: Vec<EnvVar>,
    /// Variables that list the NICs of a container's devices, in the order of the names; empty in files before 1.2.
    #[serde(default)]
    pub nic_lists: Vec<NicList>,
    /// Devices in the order of their ids.
    pub devices: Vec<NodeDevice>,
}

/// A variable for the container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// A variable that lists the NICs of a container's devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NicList {
    /// Name.
    pub name: String,
    /// How its readers want the list.
    pub form: NicListForm,
}

/// How a library wants a list of NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NicListForm {
    /// `=mlx5_0:1,mlx5_3:1`: without the sign NCCL takes each name for the beginning of one
    /// (<https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-hca>).
    Exact,
    /// `mlx5_0:1,mlx5_3:1`: UCX and NVSHMEM; UCX wants the port.
    Ports,
}

/// One device on the kubelet's wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDevice {
    /// The GPU's UUID; without a driver its PCI address; for a shared NIC `<pci>-<replica>`.
    pub id: String,
    /// The GPU, unless the device is a shared NIC.
    pub gpu: Option<NodeGpu>,
    /// The NICs of the device, best first.
    pub nics: Vec<NodeNic>,
    /// Whether another device has the same NIC.
    pub shared: bool,
    /// NUMA nodes for the kubelet's Topology Manager; empty where unknown.
    pub numa_nodes: Vec<u32>,
    /// CDI device names, `gpurdma.dev/pair=…`.
    pub cdi_devices: Vec<String>,
    /// Device nodes that every container needs besides those of CDI, such as `/dev/infiniband/rdma_cm`.
    pub device_nodes: Vec<DeviceNode>,
    /// Links to the other devices of the resource, for preferred allocation. Empty for shared NICs, whose replicas
    /// would make it quadratic and which are spread evenly anyway.
    pub links: Vec<DeviceLink>,
    /// Whether it may be handed out on this boot.
    pub admitted: bool,
    /// Whether a probe proved that it works (`false` leaves it admitted).
    pub verified: bool,
    /// Why it is admitted or not.
    pub reason: String,
    /// Why this NIC was chosen for this GPU.
    pub pair_reason: String,
}

/// The GPU of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeGpu {
    /// `GPU<index>`.
    pub name: String,
    /// Its UUID, where a driver gives one.
    pub uuid: Option<String>,
    /// PCI address.
    pub pci: String,
}

/// A NIC of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeNic {
    /// RDMA device name.
    pub rdma: String,
    /// PCI address; software devices have none.
    pub pci: Option<String>,
    /// `/dev/infiniband/uverbs<N>` that belongs to this RDMA device on this PCI function; `None` where unknown, and in
    /// files before 1.1. The kernel gives the numbers anew whenever a device comes back.
    pub uverbs: Option<u32>,
    /// Port numbers to watch.
    pub ports: Vec<u32>,
    /// Distance to the GPU; `None` for a shared NIC.
    pub distance: Option<Distance>,
    /// Position in the cluster's rail map.
    pub rail: Option<u32>,
}

/// A device node for the container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceNode {
    /// Path on the host.
    pub host_path: String,
    /// Path in the container.
    pub container_path: String,
    /// `r`, `w`, `m`.
    pub permissions: String,
}

/// How well two devices of a resource are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceLink {
    /// The other device's id.
    pub to: String,
    /// Number of NVLink connections.
    pub nvlinks: u32,
    /// PCIe distance of the two GPUs.
    pub distance: Distance,
    /// Whether they are on one NUMA node; `None` where unknown.
    pub same_numa: Option<bool>,
}

#[cfg(test)]
mod tests;
