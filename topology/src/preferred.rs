//! Which devices to prefer for a request of N: the best connected set that harms later requests least.
//!
//! Pure; the device plugin calls it from `GetPreferredAllocation`. A set is better if it has, in this order: most
//! NVLink connections inside, the least bad PCIe distances (fewest SYS, then fewest NODE, …), fewest pairs across NUMA nodes; then,
//! if what remains is better connected (most NVLink connections, most PIX pairs, most PXB, …). So a request for one takes from a
//! group that is already broken. Up to 16 available devices the answer is exact; above, a greedy search finds a good
//! one. Shared NICs have no links: they are spread over the NICs evenly.

use std::collections::{BTreeMap, BTreeSet};

use crate::distance::Distance;
use crate::node_file::{DeviceLink, NodeResource};
use crate::policy::ResourceKind;

mod exact;
mod search;
mod spread;

/// Above this many available devices the search is greedy.
const EXACT: usize = 16;

/// What is known of the devices of a resource; made once, when the node file is read.
#[derive(Clone, Debug)]
pub struct Preference {
    ids: BTreeMap<String, usize>,
    way: Way,
}

/// What the choice goes by.
#[derive(Clone, Debug)]
enum Way {
    /// How every two devices are connected.
    Connected(Vec<Vec<Link>>),
    /// The first NIC of each device. There are hundreds: connections of every two would take tens of megabytes.
    Spread(Vec<String>),
}

/// How two devices are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    nvlinks: i64,
    distance: Distance,
    across_numa: bool,
}

impl Link {
    const NONE: Self = Self {
        nvlinks: 0,
        distance: Distance::Unknown,
        across_numa: true,
    };
}

impl From<&DeviceLink> for Link {
    fn from(link: &DeviceLink) -> Self {
        let across_numa = link.same_numa != Some(true);
        Self {
            nvlinks: i64::from(link.nvlinks),
            distance: link.distance,
            across_numa,
        }
    }
}

impl Preference {
    /// Prepares the choice for one resource.
    #[must_use]
    pub fn new(resource: &NodeResource) -> Self {
        let ids: BTreeSet<&String> = resource.devices.iter().map(|device| &device.id).collect();
        let ids: BTreeMap<String, usize> = ids
            .into_iter()
            .cloned()
            .enumerate()
            .map(|(at, id)| (id, at))
            .collect();
        let way = if resource.kind == ResourceKind::SharedNic {
            Way::Spread(nics(resource, &ids))
        } else {
            Way::Connected(links(resource, &ids))
        };
        Self { ids, way }
    }

    /// Chooses `size` of the available devices, those of `must_include` among them, in the order of their ids. Ids that
    /// the resource does not have are dropped; where there are fewer devices than asked for, all are returned.
    #[must_use]
    pub fn choose(
        &self,
        available: &[String],
        must_include: &[String],
        size: usize,
    ) -> Vec<String> {
        let must = self.known(must_include);
        let available: BTreeSet<usize> = self.known(available).union(&must).copied().collect();
        let free: Vec<usize> = available.difference(&must).copied().collect();
        let more = size.saturating_sub(must.len()).min(free.len());
        let chosen = match &self.way {
            Way::Spread(nics) => spread::choose(nics, &must, &free, more),
            Way::Connected(links) if available.len() <= EXACT => {
                exact::choose(links, &must, &free, more)
            }
            Way::Connected(links) => search::greedy(links, &must, &free, more),
        };
        self.ids
            .iter()
            .filter(|(_, at)| chosen.contains(at))
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn known(&self, ids: &[String]) -> BTreeSet<usize> {
        ids.iter()
            .filter_map(|id| self.ids.get(id).copied())
            .collect()
    }
}

fn links(resource: &NodeResource, ids: &BTreeMap<String, usize>) -> Vec<Vec<Link>> {
    let mut links = vec![vec![Link::NONE; ids.len()]; ids.len()];
    for device in &resource.devices {
        let Some(&own) = ids.get(&device.id) else {
            continue;
        };
        for link in &device.links {
            if let Some(&other) = ids.get(&link.to) {
                links[own][other] = link.into();
                links[other][own] = link.into();
            }
        }
    }
    links
}

fn nics(resource: &NodeResource, ids: &BTreeMap<String, usize>) -> Vec<String> {
    let mut nics = vec![String::new(); ids.len()];
    for device in &resource.devices {
        if let Some((&own, nic)) = ids.get(&device.id).zip(device.nics.first()) {
            nics[own] = nic.pci.clone().unwrap_or_else(|| nic.rdma.clone());
        }
    }
    nics
}

#[cfg(test)]
mod tests;
