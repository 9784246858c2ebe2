//! Distance between a GPU and a NIC, by the names that `nvidia-smi topo` prints.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Closest first. The names are those of `nvidia-smi topo -m`; what NCCL calls a path is [`Path::nccl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Distance {
    /// At most one PCIe switch between.
    Pix,
    /// Several PCIe switches, no host bridge.
    Pxb,
    /// A PCIe host bridge (the CPU) between.
    Phb,
    /// Two host bridges of one NUMA node.
    Node,
    /// The interconnect between NUMA nodes.
    Sys,
    /// Nothing on this machine tells.
    Unknown,
}

/// NCCL's own name of a path (`src/graph/topo.h`); its numbers move between releases, so only names are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NcclPath {
    /// One switch.
    Pix,
    /// Several switches.
    Pxb,
    /// GPU to CPU over C2C, then PCIe.
    P2c,
    /// Through the CPU; NCCL has one CPU vertex per NUMA node, so NODE is PHB to it.
    Phb,
    /// Through another NUMA node.
    Sys,
}

/// Where a distance comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DistanceSource {
    /// The PCIe ancestry and NUMA nodes of `/sys`.
    Sysfs,
    /// A topology file; its path.
    TopologyFile(String),
    /// A matrix that somebody printed.
    Matrix,
}

/// How a GPU and a NIC are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Path {
    /// The level.
    pub distance: Distance,
    /// PCI functions passed between the two, where the tree shows them.
    pub hops: Option<u32>,
    /// NCCL's name of the same path, where it is known.
    pub nccl: Option<NcclPath>,
    /// Who says so.
    pub source: DistanceSource,
}

impl Distance {
    /// The name that `nvidia-smi topo` prints; `unknown` where nothing tells.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
            Self::Unknown => "unknown",
        }
    }

    /// Position in the order of the names, closest first: 0 for PIX.
    #[must_use]
    pub fn rank(self) -> u8 {
        match self {
            Self::Pix => 0,
            Self::Pxb => 1,
            Self::Phb => 2,
            Self::Node => 3,
            Self::Sys => 4,
            Self::Unknown => 5,
        }
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Distances by index → index.
pub type Cells = BTreeMap<usize, BTreeMap<usize, Distance>>;

/// Distances that were stated rather than computed: GPU index → NIC index → distance; a missing cell was not shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatedDistances {
    /// Who says so.
    pub source: DistanceSource,
    /// The cells.
    pub cells: Cells,
    /// GPU index → GPU index, where stated.
    #[serde(default)]
    pub gpu_cells: Cells,
    /// NIC index → NIC index, where stated.
    #[serde(default)]
    pub nic_cells: Cells,
}
