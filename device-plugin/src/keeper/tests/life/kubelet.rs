//! The kubelet's part: what it has heard, and which container has which device.

use std::collections::{BTreeMap, BTreeSet};

use host::machine::verbs::VerbsOwner;
use topology::node_file::NodeDevice;

use crate::allocate::{Host, allocate};
use crate::prefer::prefer;
use crate::proto::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest, HEALTHY,
    PreferredAllocationRequest,
};
use crate::resource::{Resource, Snapshot};

/// A live container: the resource and its devices as they were when it got them.
struct Container {
    resource: String,
    devices: Vec<NodeDevice>,
}

#[derive(Default)]
pub(super) struct Kubelet {
    /// Whether each device of a resource is healthy.
    lists: BTreeMap<String, BTreeMap<String, bool>>,
    live: Vec<Container>,
}

impl Kubelet {
    /// A resource that the plugin closed is one whose plugin is lost.
    pub(super) fn hear(&mut self, snapshot: &Snapshot) {
        self.lose_plugin();
        for (name, resource) in &snapshot.resources {
            let listing = resource.listing().into_iter();
            let list = listing.map(|device| (device.id, device.health == HEALTHY));
            self.lists.insert(name.clone(), list.collect());
        }
    }

    pub(super) fn lose_plugin(&mut self) {
        for healthy in self.lists.values_mut().flat_map(BTreeMap::values_mut) {
            *healthy = false;
        }
    }

    /// The checkpoint keeps what containers have.
    pub(super) fn forget(&mut self) {
        self.lists.clear();
    }

    pub(super) fn reboot(&mut self) {
        self.lists.clear();
        self.live.clear();
    }

    pub(super) fn end(&mut self, at: usize) {
        if at < self.live.len() {
            self.live.remove(at);
        }
    }

    /// What the kubelet tells the agent.
    pub(super) fn held(&self) -> BTreeSet<String> {
        let devices = self.live.iter().flat_map(|container| &container.devices);
        devices.map(|device| device.id.clone()).collect()
    }

    /// A pod asks for devices of the n-th resource; it fails where there are too few, or where the plugin refuses.
    pub(super) fn start(&mut self, snapshot: &Snapshot, nth: usize, count: usize) {
        let Some((name, list)) = self.lists.iter().nth(nth) else {
            return;
        };
        let same = self.live.iter().filter(|live| live.resource == *name);
        let taken: BTreeSet<&String> = same
            .flat_map(|live| live.devices.iter().map(|device| &device.id))
            .collect();
        let free = list
            .iter()
            .filter(|(id, healthy)| **healthy && !taken.contains(id));
        let free: Vec<String> = free.map(|(id, _)| id.clone()).collect();
        let Some(resource) = snapshot.resource(name).filter(|_| free.len() >= count) else {
            return;
        };
        let chosen = choose(&resource, free, count);
        if let Some(devices) = given(&resource, &chosen) {
            let resource = name.clone();
            self.live.push(Container { resource, devices });
        }
    }

    /// PCI addresses of the GPUs in live containers.
    pub(super) fn gpus(&self) -> impl Iterator<Item = &String> {
        let devices = self.live.iter().flat_map(|container| &container.devices);
        devices.filter_map(|device| device.gpu.as_ref().map(|gpu| &gpu.pci))
    }

    /// Container, NIC, and whether its device is declared shared.
    pub(super) fn nics(&self) -> Vec<(usize, &str, bool)> {
        let mut nics = Vec::new();
        for (at, container) in self.live.iter().enumerate() {
            for device in &container.devices {
                let own = device.nics.iter().filter_map(|nic| nic.pci.as_deref());
                nics.extend(own.map(|pci| (at, pci, device.shared)));
            }
        }
        nics
    }
}

/// What the plugin prefers, filled up with any others.
fn choose(resource: &Resource, free: Vec<String>, count: usize) -> Vec<String> {
    let container = ContainerPreferredAllocationRequest {
        available_device_ids: free.clone(),
        must_include_device_ids: Vec::new(),
        allocation_size: i32::try_from(count).unwrap(),
    };
    let request = PreferredAllocationRequest {
        container_requests: vec![container],
    };
    let mut chosen = prefer(Some(resource), &request)
        .container_responses
        .remove(0)
        .device_ids;
    for id in free {
        if chosen.len() < count && !chosen.contains(&id) {
            chosen.push(id);
        }
    }
    chosen
}

/// The devices, unless the plugin refuses one.
fn given(resource: &Resource, ids: &[String]) -> Option<Vec<NodeDevice>> {
    let container = ContainerAllocateRequest {
        device_ids: ids.to_vec(),
    };
    let request = AllocateRequest {
        container_requests: vec![container],
    };
    let host = Host {
        present: &|_| true,
        owner: &|_| VerbsOwner::NOBODY,
    };
    allocate(resource, &request, &host).ok()?;
    let devices = ids.iter().map(|id| resource.plan().device(id).cloned());
    devices.collect()
}
