//! The devices of a resource, as the plugin needs them.

use std::collections::BTreeSet;

use super::{DeviceLink, NodeDevice, NodeGpu, NodeNic};
use crate::distance::Distance;
use crate::machine::{Gpu, Machine, Nic};
use crate::partition::{HardwareRef, PartitionDevice, ResourcePartition, gpu_key, nic_key};
use crate::paths::Paths;
use crate::policy::ResourceKind;

/// Fills ids, parts, NUMA nodes, links and reasons. The caller sets CDI names, device nodes, rails and admission; until
/// then no device is admitted.
#[must_use]
pub fn devices(machine: &Machine, paths: &Paths, resource: &ResourcePartition) -> Vec<NodeDevice> {
    let parts: Vec<Parts<'_>> = resource
        .devices
        .iter()
        .map(|device| Parts::find(machine, device))
        .collect();
    let mut devices: Vec<NodeDevice> = parts
        .iter()
        .map(|own| build(paths, resource.kind, own, &parts))
        .collect();
    devices.sort_by(|a, b| a.id.cmp(&b.id));
    devices
}

/// A device with its hardware, as far as that is present.
struct Parts<'a> {
    device: &'a PartitionDevice,
    gpu: Option<&'a Gpu>,
    nics: Vec<(&'a HardwareRef, Option<&'a Nic>)>,
}

impl<'a> Parts<'a> {
    fn find(machine: &'a Machine, device: &'a PartitionDevice) -> Self {
        let gpu = device
            .gpu
            .as_ref()
            .and_then(|part| machine.gpus.iter().find(|gpu| gpu_key(gpu) == part.key));
        let nic = |part: &HardwareRef| {
            machine
                .nics
                .iter()
                .find(|nic| nic_key(machine, nic) == part.key)
        };
        Self {
            device,
            gpu,
            nics: device.nics.iter().map(|part| (part, nic(part))).collect(),
        }
    }

    fn numa_nodes(&self) -> BTreeSet<u32> {
        let gpu = self.gpu.and_then(|gpu| gpu.numa.known());
        let nics = self
            .nics
            .iter()
            .filter_map(|(_, nic)| nic.as_ref()?.numa.known());
        gpu.into_iter().chain(nics).copied().collect()
    }
}

fn build(paths: &Paths, kind: ResourceKind, own: &Parts<'_>, all: &[Parts<'_>]) -> NodeDevice {
    let device = own.device;
    let nics = own
        .nics
        .iter()
        .map(|(part, nic)| node_nic(paths, own.gpu, part, *nic))
        .collect();
    let links = if kind == ResourceKind::SharedNic {
        Vec::new()
    } else {
        links(paths, own, all)
    };
    NodeDevice {
        id: device.id.clone(),
        gpu: device.gpu.as_ref().map(|part| node_gpu(part, own.gpu)),
        nics,
        shared: device.shared,
        numa_nodes: own.numa_nodes().into_iter().collect(),
        cdi_devices: Vec::new(),
        device_nodes: Vec::new(),
        links,
        admitted: false,
        verified: false,
        reason: reason(device),
        pair_reason: device.reason.clone(),
    }
}

fn reason(device: &PartitionDevice) -> String {
    if device.missing.is_empty() {
        "not checked yet".to_owned()
    } else {
        format!("missing: {}", device.missing.join(", "))
    }
}

fn node_gpu(part: &HardwareRef, gpu: Option<&Gpu>) -> NodeGpu {
    let pci = part.pci.map_or_else(String::new, |pci| pci.to_string());
    let uuid = match gpu {
        Some(gpu) => gpu.uuid.known().cloned(),
        // Its place is kept under the UUID that it had.
        None => Some(part.key.clone()).filter(|key| *key != pci && *key != part.name),
    };
    NodeGpu {
        name: gpu.map_or_else(|| part.name.clone(), Gpu::name),
        uuid,
        pci,
    }
}

fn node_nic(paths: &Paths, gpu: Option<&Gpu>, part: &HardwareRef, nic: Option<&Nic>) -> NodeNic {
    NodeNic {
        rdma: nic.map_or_else(|| part.name.clone(), Nic::name),
        pci: part.pci.map(|pci| pci.to_string()),
        uverbs: nic.and_then(|nic| nic.uverbs.known().copied()),
        ports: nic.map_or_else(Vec::new, |nic| {
            nic.ports.iter().map(|port| port.number).collect()
        }),
        distance: gpu
            .zip(nic)
            .map(|(gpu, nic)| paths.distance(gpu.index, nic.index)),
        rail: None,
    }
}

fn links(paths: &Paths, own: &Parts<'_>, all: &[Parts<'_>]) -> Vec<DeviceLink> {
    let others = all.iter().filter(|other| other.device.id != own.device.id);
    let mut links: Vec<DeviceLink> = others.filter_map(|other| link(paths, own, other)).collect();
    links.sort_by(|a, b| a.to.cmp(&b.to));
    links
}

fn link(paths: &Paths, own: &Parts<'_>, other: &Parts<'_>) -> Option<DeviceLink> {
    let (a, b) = (own.gpu?, other.gpu?);
    let same_numa = a.numa.known().zip(b.numa.known()).map(|(a, b)| a == b);
    let nvlinks = a
        .nvlinks
        .get(&b.index)
        .or_else(|| b.nvlinks.get(&a.index))
        .copied()
        .unwrap_or(0);
    let distance = paths
        .gpu_gpu(a.index, b.index)
        .map_or(Distance::Unknown, |path| path.distance);
    Some(DeviceLink {
        to: other.device.id.clone(),
        nvlinks,
        distance,
        same_numa,
    })
}
