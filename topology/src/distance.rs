//! Distance between a GPU and a NIC, by the names that `nvidia-smi topo` prints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Closest first. The names are those of `nvidia-smi topo -m`; what NCCL calls a path is [`Path::nccl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// Distances that were stated rather than computed: GPU index → NIC index → distance; a missing cell was not shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatedDistances {
    /// Who says so.
    pub source: DistanceSource,
    /// The cells.
    pub cells: BTreeMap<usize, BTreeMap<usize, Distance>>,
}
