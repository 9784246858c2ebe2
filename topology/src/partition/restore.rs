//! The partition as a node file shows it, for when the partition itself cannot be read. Pure; the agent calls it.

use super::{HardwareRef, Partition, PartitionDevice, ResourcePartition, nic_key};
use crate::machine::Machine;
use crate::node_file::{NodeDevice, NodeFile, NodeGpu, NodeNic};

/// The devices of `file`, in the order of their hardware. `machine` tells which of its NICs share a function.
#[must_use]
pub fn restore(file: &NodeFile, machine: &Machine) -> Partition {
    let resources = file.resources.iter().map(|resource| {
        let devices = resource.devices.iter();
        let mut devices: Vec<PartitionDevice> = devices.map(|d| device(d, machine)).collect();
        devices.sort_by_key(|device| {
            let first = device.gpu.iter().chain(&device.nics).next();
            (first.and_then(|part| part.pci), device.id.clone())
        });
        ResourcePartition {
            name: resource.name.clone(),
            kind: resource.kind,
            devices,
        }
    });
    Partition {
        resources: resources.collect(),
        ..Partition::default()
    }
}

fn device(device: &NodeDevice, machine: &Machine) -> PartitionDevice {
    PartitionDevice {
        id: device.id.clone(),
        gpu: device.gpu.as_ref().map(gpu),
        nics: device.nics.iter().map(|n| nic(n, machine)).collect(),
        shared: device.shared,
        missing: Vec::new(),
        reason: device.pair_reason.clone(),
    }
}

fn gpu(gpu: &NodeGpu) -> HardwareRef {
    HardwareRef {
        key: gpu.uuid.clone().unwrap_or_else(|| gpu.pci.clone()),
        pci: gpu.pci.parse().ok(),
        name: gpu.name.clone(),
    }
}

fn nic(nic: &NodeNic, machine: &Machine) -> HardwareRef {
    let pci = nic.pci.as_ref().and_then(|pci| pci.parse().ok());
    let mut seen = machine.nics.iter();
    let seen = seen.find(|seen| seen.pci == pci && seen.name() == nic.rdma);
    let unseen = || nic.pci.clone().unwrap_or_else(|| nic.rdma.clone());
    HardwareRef {
        key: seen.map_or_else(unseen, |seen| nic_key(machine, seen)),
        pci,
        name: nic.rdma.clone(),
    }
}

#[cfg(test)]
mod tests;
