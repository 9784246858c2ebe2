//! Which policies make a partition, and why others do not.

use crate::policy::{ResourceKind, ResourcePolicy};

/// Policies or hardware that make no partition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// Two resources of a kind.
    #[error(
        "resources {first} and {second} are both of kind {kind:?}; keep one, because a device can be in one resource only"
    )]
    TwoOfKind {
        /// The kind.
        kind: ResourceKind,
        /// One name.
        first: String,
        /// The other.
        second: String,
    },
    /// Two resources of a name.
    #[error("resource name {0} is used twice; give each resource its own name")]
    DuplicateName(String),
    /// A number that must be 1 or more.
    #[error("{field} of resource {name} is 0; write 1 or more")]
    Zero {
        /// The resource.
        name: String,
        /// The field.
        field: &'static str,
    },
    /// Two devices with one id.
    #[error("two devices have the id {0}; the GPUs' UUIDs and PCI addresses must differ")]
    DuplicateId(String),
}

pub(super) fn validate(policies: &[ResourcePolicy]) -> Result<(), PartitionError> {
    for (at, policy) in policies.iter().enumerate() {
        let name = policy.name.clone();
        if policy.nics_per_gpu == 0 {
            return Err(PartitionError::Zero {
                name,
                field: "nicsPerGpu",
            });
        }
        if policy.replicas == 0 {
            return Err(PartitionError::Zero {
                name,
                field: "replicas",
            });
        }
        for other in &policies[..at] {
            if other.name == policy.name {
                return Err(PartitionError::DuplicateName(name));
            }
            if other.kind == policy.kind {
                return Err(PartitionError::TwoOfKind {
                    kind: policy.kind,
                    first: other.name.clone(),
                    second: name,
                });
            }
        }
    }
    Ok(())
}
