//! Resources of the API as policies of the pairing. Pure; [`crate::decide`] calls it.

use crds::cluster::{self, Resource};
use topology::distance::Distance;
use topology::policy::{NicSharing, ResourceKind, ResourcePolicy, UnknownDistance};

/// The policies that the resources ask for; none asked means the default one.
#[must_use]
pub fn policies(resources: &[Resource]) -> Vec<ResourcePolicy> {
    if resources.is_empty() {
        return vec![ResourcePolicy::default()];
    }
    resources.iter().map(policy).collect()
}

/// Destructured without `..`: a new field cannot be forgotten.
fn policy(resource: &Resource) -> ResourcePolicy {
    let Resource {
        name,
        kind,
        max_distance,
        unknown_distance,
        nics_per_gpu,
        nic_sharing,
        replicas,
    } = resource;
    ResourcePolicy {
        name: name.clone(),
        kind: match kind {
            cluster::ResourceKind::Pair => ResourceKind::Pair,
            cluster::ResourceKind::Gpu => ResourceKind::Gpu,
            cluster::ResourceKind::SharedNic => ResourceKind::SharedNic,
        },
        max_distance: match max_distance {
            cluster::MaxDistance::Pix => Distance::Pix,
            cluster::MaxDistance::Pxb => Distance::Pxb,
            cluster::MaxDistance::Phb => Distance::Phb,
            cluster::MaxDistance::Node => Distance::Node,
            cluster::MaxDistance::Sys => Distance::Sys,
        },
        unknown_distance: match unknown_distance {
            cluster::UnknownDistance::TopologyFile => UnknownDistance::TopologyFile,
            cluster::UnknownDistance::Refuse => UnknownDistance::Refuse,
            cluster::UnknownDistance::ByOrder => UnknownDistance::ByOrder,
        },
        nics_per_gpu: *nics_per_gpu,
        nic_sharing: match nic_sharing {
            cluster::NicSharing::WhenScarce => NicSharing::WhenScarce,
            cluster::NicSharing::Never => NicSharing::Never,
        },
        replicas: *replicas,
    }
}

#[cfg(test)]
mod tests;
