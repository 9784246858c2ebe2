//! Which device belongs to which resource.
//!
//! Pure. The agent computes it once from the hardware that is present, persists it, and merges later results into it
//! with [`merge`]. Devices are named by what survives a reboot: GPUs by UUID, NICs by PCI address.
//!
//! * A GPU is in the Pair resource if it has a NIC, else in the Gpu resource, else in none: never in two.
//! * Shared NICs are those of role Storage and those of role Compute that no pair has. Management and Ignore are never
//!   handed out.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::machine::{Gpu, Machine, Nic, NicRole};
use crate::pairing::{self, Pairing};
use crate::paths::Paths;
use crate::pci::PciAddress;
use crate::policy::{ResourceKind, ResourcePolicy};

mod merge;
mod policies;
mod restore;

pub use merge::{Deferred, Merged, merge};
pub use policies::PartitionError;
pub use restore::restore;

/// Every device of a node, by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// Resources in the order of their name.
    pub resources: Vec<ResourcePartition>,
    /// The hardware that was present: key of each GPU and NIC, and its PCI address.
    pub present: BTreeMap<String, Option<PciAddress>>,
    /// GPUs that belong to no resource, and why.
    pub left_over: Vec<LeftOver>,
}

/// The devices of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePartition {
    /// Extended resource name.
    pub name: String,
    /// What one device is.
    pub kind: ResourceKind,
    /// Devices; a device keeps its slot for as long as it is known.
    pub devices: Vec<PartitionDevice>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionDevice {
    /// Id on the kubelet's wire.
    pub id: String,
    /// The GPU, unless it is a shared NIC.
    pub gpu: Option<HardwareRef>,
    /// NICs, best first.
    pub nics: Vec<HardwareRef>,
    /// Whether another device has the same NIC.
    pub shared: bool,
    /// What of it is not present; empty while it is all there.
    pub missing: Vec<String>,
    /// Why it has these parts.
    pub reason: String,
}

/// A GPU or NIC, by what survives a reboot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HardwareRef {
    /// A GPU's UUID; a NIC's PCI address, with its RDMA name where several devices have the function.
    pub key: String,
    /// PCI address.
    pub pci: Option<PciAddress>,
    /// Name for the user: `GPU0`, `mlx5_0`.
    pub name: String,
}

/// A GPU that no resource has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOver {
    /// The GPU's key.
    pub gpu: String,
    /// Why.
    pub reason: String,
}

/// Computes the partition of the hardware that is present.
pub fn partition(
    machine: &Machine,
    paths: &Paths,
    policies: &[ResourcePolicy],
) -> Result<Partition, PartitionError> {
    policies::validate(policies)?;
    let keys = Keys::new(machine);
    let of_kind = |kind| policies.iter().find(move |policy| policy.kind == kind);
    let pairing = of_kind(ResourceKind::Pair).map_or_else(
        || no_pairs(machine),
        |policy| pairing::pair(machine, paths, policy),
    );
    let mut resources: Vec<ResourcePartition> = policies
        .iter()
        .map(|policy| resource(policy, machine, &keys, &pairing))
        .collect();
    resources.sort_by(|a, b| a.name.cmp(&b.name));
    let left_over = if of_kind(ResourceKind::Gpu).is_some() {
        Vec::new()
    } else {
        left_over(&keys, &pairing)
    };
    let partition = Partition {
        resources,
        present: keys.present(),
        left_over,
    };
    reject_duplicates(machine, &partition)?;
    Ok(partition)
}

fn no_pairs(machine: &Machine) -> Pairing {
    let mut gpus: Vec<usize> = machine.gpus.iter().map(|gpu| gpu.index).collect();
    gpus.sort_unstable();
    let reason = "no resource of kind Pair".to_owned();
    let unpaired = gpus
        .into_iter()
        .map(|gpu| pairing::Unpaired {
            gpu,
            reason: reason.clone(),
        })
        .collect();
    Pairing {
        pairs: Vec::new(),
        unpaired,
    }
}

fn resource(
    policy: &ResourcePolicy,
    machine: &Machine,
    keys: &Keys,
    pairing: &Pairing,
) -> ResourcePartition {
    let devices = match policy.kind {
        ResourceKind::Pair => pairing
            .pairs
            .iter()
            .filter_map(|pair| pair_device(keys, pair))
            .collect(),
        ResourceKind::Gpu => pairing
            .unpaired
            .iter()
            .filter_map(|gpu| gpu_device(keys, gpu))
            .collect(),
        ResourceKind::SharedNic => shared_nics(policy, machine, keys, pairing),
    };
    ResourcePartition {
        name: policy.name.clone(),
        kind: policy.kind,
        devices,
    }
}

fn pair_device(keys: &Keys, pair: &pairing::Pair) -> Option<PartitionDevice> {
    let gpu = keys.gpus.get(&pair.gpu)?.clone();
    let nics = pair
        .nics
        .iter()
        .filter_map(|nic| keys.nics.get(nic).cloned())
        .collect();
    let (id, reason) = (gpu.key.clone(), pair.reason.clone());
    Some(PartitionDevice {
        id,
        gpu: Some(gpu),
        nics,
        shared: pair.shared,
        missing: Vec::new(),
        reason,
    })
}

fn gpu_device(keys: &Keys, unpaired: &pairing::Unpaired) -> Option<PartitionDevice> {
    let gpu = keys.gpus.get(&unpaired.gpu)?.clone();
    let (id, reason) = (gpu.key.clone(), unpaired.reason.clone());
    Some(PartitionDevice {
        id,
        gpu: Some(gpu),
        nics: Vec::new(),
        shared: false,
        missing: Vec::new(),
        reason,
    })
}

fn shared_nics(
    policy: &ResourcePolicy,
    machine: &Machine,
    keys: &Keys,
    pairing: &Pairing,
) -> Vec<PartitionDevice> {
    let paired: BTreeSet<usize> = pairing
        .pairs
        .iter()
        .flat_map(|pair| pair.nics.iter().copied())
        .collect();
    let mut nics: Vec<&Nic> = machine
        .nics
        .iter()
        .filter(|nic| is_shareable(nic, &paired))
        .collect();
    nics.sort_by_key(|nic| nic.index);
    let copies = nics
        .iter()
        .flat_map(|nic| (0..policy.replicas).map(move |replica| (*nic, replica)));
    copies
        .filter_map(|(nic, replica)| shared_nic(keys, nic, replica, policy.replicas))
        .collect()
}

fn is_shareable(nic: &Nic, paired: &BTreeSet<usize>) -> bool {
    nic.role == NicRole::Storage || (nic.role == NicRole::Compute && !paired.contains(&nic.index))
}

fn shared_nic(keys: &Keys, nic: &Nic, replica: u32, replicas: u32) -> Option<PartitionDevice> {
    let nic_ref = keys.nics.get(&nic.index)?.clone();
    let id = format!("{}-{replica}", nic_ref.key);
    let reason = match nic.role {
        NicRole::Storage => "role Storage".to_owned(),
        _ => "no pair has it".to_owned(),
    };
    Some(PartitionDevice {
        id,
        gpu: None,
        nics: vec![nic_ref],
        shared: replicas > 1,
        missing: Vec::new(),
        reason,
    })
}

fn left_over(keys: &Keys, pairing: &Pairing) -> Vec<LeftOver> {
    let reason = |why: &str| format!("{why}; there is no resource of kind Gpu to offer it");
    let keyed = pairing
        .unpaired
        .iter()
        .filter_map(|u| Some((keys.gpus.get(&u.gpu)?, &u.reason)));
    keyed
        .map(|(gpu, why)| LeftOver {
            gpu: gpu.key.clone(),
            reason: reason(why),
        })
        .collect()
}

fn reject_duplicates(machine: &Machine, partition: &Partition) -> Result<(), PartitionError> {
    let gpus: Vec<String> = machine.gpus.iter().map(gpu_key).collect();
    let nics = partition
        .resources
        .iter()
        .filter(|resource| resource.kind == ResourceKind::SharedNic);
    let ids = gpus
        .into_iter()
        .chain(nics.flat_map(|resource| resource.devices.iter().map(|device| device.id.clone())));
    let mut met = BTreeSet::new();
    for id in ids {
        if !met.insert(id.clone()) {
            return Err(PartitionError::DuplicateId(id));
        }
    }
    Ok(())
}

/// The lasting names of a machine's devices, by index.
struct Keys {
    gpus: BTreeMap<usize, HardwareRef>,
    nics: BTreeMap<usize, HardwareRef>,
}

impl Keys {
    fn new(machine: &Machine) -> Self {
        let gpu = |gpu: &Gpu| {
            (
                gpu.index,
                HardwareRef {
                    key: gpu_key(gpu),
                    pci: gpu.pci,
                    name: gpu.name(),
                },
            )
        };
        let nic = |nic: &Nic| {
            (
                nic.index,
                HardwareRef {
                    key: nic_key(machine, nic),
                    pci: nic.pci,
                    name: nic.name(),
                },
            )
        };
        Self {
            gpus: machine.gpus.iter().map(gpu).collect(),
            nics: machine.nics.iter().map(nic).collect(),
        }
    }

    fn present(&self) -> BTreeMap<String, Option<PciAddress>> {
        self.gpus
            .values()
            .chain(self.nics.values())
            .map(|hardware| (hardware.key.clone(), hardware.pci))
            .collect()
    }
}

/// The UUID; without a driver the PCI address; a machine known by its matrix only has neither, and the name stands in.
#[must_use]
pub fn gpu_key(gpu: &Gpu) -> String {
    let uuid = gpu.uuid.known().cloned();
    uuid.or_else(|| gpu.pci.map(|pci| pci.to_string()))
        .unwrap_or_else(|| gpu.name())
}

/// The PCI address, which a driver cannot rename; with the RDMA name where one function has several devices.
#[must_use]
pub fn nic_key(machine: &Machine, nic: &Nic) -> String {
    let Some(pci) = nic.pci else {
        return nic.name();
    };
    let of_function = machine
        .nics
        .iter()
        .filter(|other| other.pci == Some(pci))
        .count();
    if of_function > 1 {
        format!("{pci}/{}", nic.name())
    } else {
        pci.to_string()
    }
}

#[cfg(test)]
mod tests;
