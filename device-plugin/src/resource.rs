//! What the plugin says of one resource at one moment. Pure and immutable: [`crate::keeper`] makes a new [`Snapshot`]
//! for each change, the gRPC calls read the one that is current.

use std::collections::BTreeMap;
use std::sync::Arc;

use topology::node_file::{NodeDevice, NodeResource};
use topology::preferred::Preference;

use crate::proto;

/// A resource of the node file with what is computed from it once.
pub struct Plan {
    spec: NodeResource,
    devices: BTreeMap<String, usize>,
    preference: Preference,
}

impl Plan {
    /// Precomputes the preferred sets.
    #[must_use]
    pub fn new(spec: NodeResource) -> Self {
        let devices = spec
            .devices
            .iter()
            .enumerate()
            .map(|(at, d)| (d.id.clone(), at))
            .collect();
        let preference = Preference::new(&spec);
        Self {
            spec,
            devices,
            preference,
        }
    }

    /// The resource as the node file has it.
    #[must_use]
    pub fn spec(&self) -> &NodeResource {
        &self.spec
    }

    /// The device with this id.
    #[must_use]
    pub fn device(&self, id: &str) -> Option<&NodeDevice> {
        self.devices
            .get(id)
            .and_then(|at| self.spec.devices.get(*at))
    }

    /// The best connected sets.
    #[must_use]
    pub fn preference(&self) -> &Preference {
        &self.preference
    }
}

/// Why devices of a resource cannot be handed out, by their id; the others can.
pub type Troubles = BTreeMap<String, String>;

/// A resource and the health of its devices.
#[derive(Clone)]
pub struct Resource {
    plan: Arc<Plan>,
    troubles: Troubles,
}

impl Resource {
    /// The resource with these troubles.
    #[must_use]
    pub fn new(plan: Arc<Plan>, troubles: Troubles) -> Self {
        Self { plan, troubles }
    }

    /// What was computed once.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Why the device cannot be handed out.
    #[must_use]
    pub fn trouble(&self, id: &str) -> Option<&str> {
        self.troubles.get(id).map(String::as_str)
    }

    /// All troubles.
    #[must_use]
    pub fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// The kubelet's list, in the order of the ids.
    #[must_use]
    pub fn listing(&self) -> Vec<proto::Device> {
        let by_id = self
            .plan
            .devices
            .keys()
            .filter_map(|id| self.plan.device(id));
        by_id
            .map(|device| entry(device, self.trouble(&device.id).is_none()))
            .collect()
    }
}

impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        self.troubles == other.troubles
            && (Arc::ptr_eq(&self.plan, &other.plan) || self.plan.spec == other.plan.spec)
    }
}

/// One line of the list. Topology is left out where no NUMA node is known: an invented node misleads the kubelet's
/// Topology Manager, and readers of its API fail over one that does not exist.
#[must_use]
pub fn entry(device: &NodeDevice, healthy: bool) -> proto::Device {
    let nodes: Vec<_> = device
        .numa_nodes
        .iter()
        .map(|id| proto::NumaNode { id: (*id).into() })
        .collect();
    proto::Device {
        id: device.id.clone(),
        health: if healthy {
            proto::HEALTHY
        } else {
            proto::UNHEALTHY
        }
        .to_owned(),
        topology: (!nodes.is_empty()).then_some(proto::TopologyInfo { nodes }),
    }
}

/// Every resource at one moment, by its name.
#[derive(Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The resources to register.
    pub resources: BTreeMap<String, Arc<Resource>>,
}

impl Snapshot {
    /// The resource, if it is served.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<Arc<Resource>> {
        self.resources.get(name).cloned()
    }
}

#[cfg(test)]
mod tests;
