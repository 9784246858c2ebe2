//! The model of one machine: its PCI functions, GPUs and RDMA devices, as read from `/sys` or a machine file.
//!
//! Pure data. `host` reads it from a running machine, [`crate::file`] from a file.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::distance::StatedDistances;
use crate::fact::Fact;
use crate::pci::PciAddress;

/// Everything that pairing needs to know of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// GPUs in the order of their index.
    pub gpus: Vec<Gpu>,
    /// RDMA devices in the order of their index.
    pub nics: Vec<Nic>,
    /// Every PCI function that was seen, bridges too. Empty for a machine known by its matrix only.
    pub functions: BTreeMap<PciAddress, PciFunction>,
    /// Distances that somebody stated: a matrix that was printed, or a topology file of a cloud.
    pub stated: Option<StatedDistances>,
    /// The topology file that `functions` come from; `None` where `/sys` shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_file: Option<TreeFile>,
    /// What could not be read or contradicts itself; shown to the user as it is.
    pub notes: Vec<String>,
}

/// A topology file that stands in the place of `/sys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeFile {
    /// Its path.
    pub path: String,
    /// Links as the file states them; `/sys` does not have those of bridges that a cloud invented.
    pub links: BTreeMap<PciAddress, PciLink>,
}

/// A PCIe link, in the words of NCCL's topology files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PciLink {
    /// `32.0 GT/s PCIe`.
    pub speed: String,
    /// Number of lanes.
    pub width: u32,
}

impl Machine {
    /// NICs that are no virtual functions.
    pub fn physical_nics(&self) -> impl Iterator<Item = &Nic> {
        self.nics.iter().filter(|nic| nic.physfn.is_none())
    }
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// Position: `GPU<index>` is its name here; PCI address order on a live machine.
    pub index: usize,
    /// `GPU-xxxxxxxx-…` from `/proc/driver/nvidia/gpus/<pci>/information`; without a driver there is none.
    pub uuid: Fact<String>,
    /// Where it sits; a machine known by its matrix only may not say.
    pub pci: Option<PciAddress>,
    /// Minor number of `/dev/nvidia<minor>`.
    pub minor: Fact<u32>,
    /// The kernel's `numa_node`; −1 reads as `Absent`.
    pub numa: Fact<u32>,
    /// Product name, such as `NVIDIA H100 80GB HBM3`.
    pub product: Fact<String>,
    /// Size of BAR1 in bytes: what can be registered for RDMA at once.
    pub bar1_bytes: Fact<u64>,
    /// How many NVLink connections lead to other GPUs, by their index.
    pub nvlinks: BTreeMap<usize, u32>,
}

impl Gpu {
    /// `GPU<index>`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("GPU{}", self.index)
    }
}

/// One RDMA device (an entry of `/sys/class/infiniband`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Nic {
    /// Position: `NIC<index>`.
    pub index: usize,
    /// RDMA device name (`mlx5_0`, `rocep145s0`, …); a file may not know it.
    pub rdma: Option<String>,
    /// PCI function; software devices (rxe, siw) have none.
    pub pci: Option<PciAddress>,
    /// The kernel's `numa_node`; −1 reads as `Absent`.
    pub numa: Fact<u32>,
    /// Network interfaces of the same function.
    pub netdevs: Vec<String>,
    /// Ports in the order of their number.
    pub ports: Vec<Port>,
    /// The physical function that this virtual function belongs to.
    pub physfn: Option<PciAddress>,
    /// One RDMA device over several ports of a card (`mlx5_bond_0`).
    pub bond: bool,
    /// `/dev/infiniband/uverbs<N>` of the device.
    pub uverbs: Fact<u32>,
    /// PCI vendor and device id, `(0x15b3, 0x1021)`.
    pub ids: Fact<(u16, u16)>,
    /// What the device is used for.
    pub role: NicRole,
}

impl Nic {
    /// The RDMA device name where known, else `NIC<index>`.
    #[must_use]
    pub fn name(&self) -> String {
        self.rdma
            .clone()
            .unwrap_or_else(|| format!("NIC{}", self.index))
    }
}

/// What an RDMA device is used for; only `Compute` devices are paired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NicRole {
    /// Carries GPU traffic.
    #[default]
    Compute,
    /// Carries storage traffic.
    Storage,
    /// Carries the node's own addresses.
    Management,
    /// Not to be used.
    Ignore,
}

/// One port of an RDMA device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Port number, from 1.
    pub number: u32,
    /// Logical state, as in `ports/<n>/state`.
    pub state: Fact<PortState>,
    /// Link layer, as in `ports/<n>/link_layer`.
    pub link_layer: Fact<LinkLayer>,
    /// Rate in Mb/s, as in `ports/<n>/rate` (400 Gb/sec reads as 400000).
    pub rate_mbps: Fact<u64>,
}

/// InfiniBand port state (IBA 1.7, `enum ib_port_state` of the kernel).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortState {
    /// No link.
    Down,
    /// Link, and no subnet manager has configured the port.
    Init,
    /// Configured, not yet active.
    Armed,
    /// Carries traffic.
    Active,
    /// Active with the link in recovery.
    ActiveDefer,
}

/// What runs on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE.
    Ethernet,
}

/// One PCI function and what is above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PciFunction {
    /// The bridge above, or the host bridge.
    pub parent: PciParent,
    /// What the function is.
    pub kind: PciKind,
    /// The kernel's `numa_node`; −1 reads as `Absent`.
    pub numa: Fact<u32>,
    /// 24-bit class code, `0x060400` for a bridge.
    pub class: Fact<u32>,
    /// Vendor id.
    pub vendor: Fact<u16>,
    /// Device id.
    pub device: Fact<u16>,
}

impl PciFunction {
    /// Whether it is a GPU of one of these vendors; NVIDIA's switches (0x0680) and audio functions are none.
    #[must_use]
    pub fn is_gpu(&self, vendors: &BTreeSet<u16>) -> bool {
        let vendor = self.vendor.known();
        let class = self.class.known().copied();
        vendor.is_some_and(|vendor| vendors.contains(vendor)) && class.is_some_and(is_gpu_class)
    }
}

/// Whether a class code can be a GPU's: a display controller (0x03…) or a processing accelerator (0x1200).
#[must_use]
pub fn is_gpu_class(class: u32) -> bool {
    class >> 16 == 0x03 || class >> 8 == 0x1200
}

/// What stands above a PCI function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PciParent {
    /// The host bridge, by the kernel's name of its root bus: `pci0000:00`.
    HostBridge(String),
    /// A bridge, root port or switch port.
    Bridge(PciAddress),
    /// Nothing is known of what is above (a partial tree).
    Unknown,
}

/// What a PCI function is, by its PCIe capability's port type or, where that is unreadable, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PciKind {
    /// Root port.
    RootPort,
    /// Upstream port of a switch; in a tree with one node per switch, the switch.
    SwitchUpstream,
    /// Downstream port of a switch.
    SwitchDownstream,
    /// Another bridge.
    Bridge,
    /// A GPU.
    Gpu,
    /// An RDMA NIC's function.
    Nic,
    /// Anything else.
    Other,
}
