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

mod search;
mod spread;

/// Above this many available devices the search is greedy: 2^16 subsets are looked at in milliseconds.
const EXACT: usize = 16;

/// What is known of the devices of a resource; made once, when the node file is read.
#[derive(Clone, Debug)]
pub struct Preference {
    ids: BTreeMap<String, usize>,
    /// How every two devices are connected.
    links: Vec<Vec<Link>>,
    /// The first NIC of each device, for shared NICs.
    nics: Option<Vec<String>>,
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
        let mut links = vec![vec![Link::NONE; ids.len()]; ids.len()];
        let mut nics = vec![String::new(); ids.len()];
        for device in &resource.devices {
            let Some(&own) = ids.get(&device.id) else {
                continue;
            };
            nics[own] = device.nics.first().map_or_else(String::new, |nic| {
                nic.pci.clone().unwrap_or_else(|| nic.rdma.clone())
            });
            for link in &device.links {
                if let Some(&other) = ids.get(&link.to) {
                    links[own][other] = link.into();
                    links[other][own] = link.into();
                }
            }
        }
        let shared = resource.kind == ResourceKind::SharedNic;
        Self {
            ids,
            links,
            nics: shared.then_some(nics),
        }
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
        let chosen = match &self.nics {
            Some(nics) => spread::choose(nics, &must, &free, more),
            None if available.len() <= EXACT => search::exact(&self.links, &must, &free, more),
            None => search::greedy(&self.links, &must, &free, more),
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

#[cfg(test)]
mod tests;
