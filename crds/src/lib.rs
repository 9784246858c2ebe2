//! API types of the group `gpurdma.dev`, version `v1alpha1`: what an admin writes ([`GpuRdmaCluster`]) and what
//! operator and agents tell each other about one node ([`GpuRdmaNode`]). Pure: types, schema, hashes.
//!
//! Everything that touches a host is *Keep* when it is omitted: a field that is absent changes nothing.

pub mod cluster;
pub mod crd;
pub mod fabric;
pub mod hash;
pub mod names;
pub mod node;
pub mod reasons;
pub mod rules;
mod schema;
pub mod texts;

pub use cluster::{GpuRdmaCluster, GpuRdmaClusterSpec, GpuRdmaClusterStatus};
pub use crd::crds;
pub use node::{GpuRdmaNode, GpuRdmaNodeSpec, GpuRdmaNodeStatus};
