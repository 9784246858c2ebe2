//! What an admin asks of the pairing: one [`ResourcePolicy`] per extended resource.

use serde::{Deserialize, Serialize};

use crate::distance::Distance;

/// One extended resource and which devices it offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePolicy {
    /// Extended resource name: `rdma/gpudirect`.
    pub name: String,
    /// What one device of it is.
    pub kind: ResourceKind,
    /// Farthest NIC that a pair may have.
    pub max_distance: Distance,
    /// What to do where the distance is unknown.
    pub unknown_distance: UnknownDistance,
    /// NICs wanted per GPU, 1 or more.
    pub nics_per_gpu: u32,
    /// Whether GPUs may share a NIC.
    pub nic_sharing: NicSharing,
    /// Copies of each NIC, for [`ResourceKind::SharedNic`].
    pub replicas: u32,
}

impl Default for ResourcePolicy {
    fn default() -> Self {
        Self {
            name: "rdma/gpudirect".to_owned(),
            kind: ResourceKind::Pair,
            max_distance: Distance::Pxb,
            unknown_distance: UnknownDistance::TopologyFile,
            nics_per_gpu: 1,
            nic_sharing: NicSharing::WhenScarce,
            replicas: 1,
        }
    }
}

/// What one device of a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ResourceKind {
    /// A GPU and its closest NICs.
    Pair,
    /// A GPU that no pair has.
    Gpu,
    /// One of several copies of a NIC.
    SharedNic,
}

/// What to do with a GPU and a NIC between which the distance is [`Distance::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnknownDistance {
    /// Believe a topology file; without one, no pair.
    TopologyFile,
    /// Never a pair.
    Refuse,
    /// Pair by index order, and say so.
    ByOrder,
}

/// Whether GPUs may share a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NicSharing {
    /// Only where GPUs outnumber the NICs within `max_distance`.
    WhenScarce,
    /// Never; the GPUs without a NIC are left to [`ResourceKind::Gpu`].
    Never,
}
