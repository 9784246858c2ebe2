//! Where a device sits: the PCI functions above it, its host bridge and its NUMA node.

use std::collections::{BTreeMap, BTreeSet};

use crate::distance::{Distance, DistanceSource, Path};
use crate::fact::Fact;
use crate::machine::{PciFunction, PciKind, PciParent};
use crate::pci::PciAddress;

/// Broadcom PEX88000 and PEX89000 in base mode: one chip that shows two switch levels, which NCCL flattens by its
/// subsystem id (`src/graph/topo.cc`). The subsystem id is no part of the model, so NCCL's name stays open.
const BROADCOM: u16 = 0x1000;
const FLATTENED: [u16; 2] = [0xc010, 0xc030];

/// The PCI functions of a machine, to look up what is above a device.
pub(super) struct Ancestry<'a> {
    functions: &'a BTreeMap<PciAddress, PciFunction>,
}

/// The place of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// The device itself, then the bridges above it, nearest first. Empty where the tree does not have it.
    chain: Vec<Link>,
    /// The host bridge at the end of the chain; `None` where the chain ends earlier.
    host_bridge: Option<String>,
    numa: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    address: PciAddress,
    is_switch: bool,
    may_be_flattened: bool,
}

impl<'a> Ancestry<'a> {
    pub(super) fn new(functions: &'a BTreeMap<PciAddress, PciFunction>) -> Self {
        Self { functions }
    }

    /// Finds the place of a device. A virtual function that the tree does not have stands where its physical function
    /// stands, and any other function where function 0 of its slot stands.
    pub(super) fn place(
        &self,
        pci: Option<PciAddress>,
        physfn: Option<PciAddress>,
        numa: &Fact<u32>,
    ) -> Place {
        let Some(own) = pci else {
            return Place {
                numa: numa.known().copied(),
                ..Place::default()
            };
        };
        let candidates = [Some(own), physfn, Some(own.with_function(0))];
        let start = candidates
            .into_iter()
            .flatten()
            .find(|address| self.tells(*address));
        let mut place = start.map_or_else(Place::default, |start| self.climb(start));
        if let Some(first) = place.chain.first_mut() {
            first.address = own;
        }
        let above = place
            .chain
            .iter()
            .skip(1)
            .map(|link| link.address)
            .chain(start);
        place.numa = numa
            .known()
            .copied()
            .or_else(|| self.numa_of(own))
            .or_else(|| self.first_numa(above));
        place
    }

    fn tells(&self, address: PciAddress) -> bool {
        self.functions
            .get(&address)
            .is_some_and(|function| function.parent != PciParent::Unknown)
    }

    /// Walks up until a host bridge, an unknown parent, or a function that was met before (malformed input).
    fn climb(&self, start: PciAddress) -> Place {
        let mut place = Place::default();
        let mut met = BTreeSet::new();
        let mut next = Some(start);
        while let Some(address) = next.filter(|address| met.insert(*address)) {
            place.chain.push(self.link(address));
            next = match self
                .functions
                .get(&address)
                .map(|function| &function.parent)
            {
                Some(PciParent::Bridge(above)) => Some(*above),
                Some(PciParent::HostBridge(name)) => {
                    place.host_bridge = Some(name.clone());
                    None
                }
                Some(PciParent::Unknown) | None => None,
            };
        }
        place
    }

    fn link(&self, address: PciAddress) -> Link {
        // A bridge that is named as a parent and not described may be a switch: the farther answer is the safe one.
        let Some(function) = self.functions.get(&address) else {
            return Link {
                address,
                is_switch: true,
                may_be_flattened: false,
            };
        };
        let device = function.device.known();
        Link {
            address,
            is_switch: function.kind == PciKind::SwitchUpstream,
            may_be_flattened: function.vendor.known() == Some(&BROADCOM)
                && device.is_some_and(|id| FLATTENED.contains(id)),
        }
    }

    fn numa_of(&self, address: PciAddress) -> Option<u32> {
        self.functions.get(&address)?.numa.known().copied()
    }

    fn first_numa(&self, mut addresses: impl Iterator<Item = PciAddress>) -> Option<u32> {
        addresses.find_map(|address| self.numa_of(address))
    }
}

impl Place {
    pub(super) fn numa(&self) -> Option<u32> {
        self.numa
    }

    /// Whether the tree does not have the device.
    pub(super) fn is_absent(&self) -> bool {
        self.chain.is_empty()
    }

    /// Whether no bridge at all is seen above the device.
    pub(super) fn is_bare(&self) -> bool {
        self.chain.len() == 1
    }

    pub(super) fn path_to(&self, other: &Self) -> Path {
        self.shared_bridge(other)
            .unwrap_or_else(|| self.through_host(other))
    }

    /// The path below the lowest function that stands above both.
    fn shared_bridge(&self, other: &Self) -> Option<Path> {
        let theirs: BTreeMap<PciAddress, usize> = other
            .chain
            .iter()
            .enumerate()
            .map(|(at, l)| (l.address, at))
            .collect();
        let (mine, their) = self
            .chain
            .iter()
            .enumerate()
            .find_map(|(at, l)| Some((at, *theirs.get(&l.address)?)))?;
        let own_side = self.chain.iter().take(mine + 1).skip(1);
        let other_side = other.chain.iter().take(their).skip(1);
        let passed: Vec<&Link> = own_side.chain(other_side).collect();
        let switches: Vec<&&Link> = passed.iter().filter(|link| link.is_switch).collect();
        let distance = if switches.len() <= 1 {
            Distance::Pix
        } else {
            Distance::Pxb
        };
        let flattened = switches.iter().filter(|link| link.may_be_flattened).count() > 1;
        let nccl = if flattened {
            None
        } else {
            super::nccl_name(distance)
        };
        Some(Path {
            distance,
            hops: count(passed.len()),
            nccl,
            source: DistanceSource::Sysfs,
        })
    }

    fn through_host(&self, other: &Self) -> Path {
        let distance = match (&self.host_bridge, &other.host_bridge, self.numa, other.numa) {
            (Some(a), Some(b), ..) if a == b => Distance::Phb,
            (_, _, Some(a), Some(b)) if a == b => Distance::Node,
            (_, _, Some(_), Some(_)) => Distance::Sys,
            _ => Distance::Unknown,
        };
        let complete = self.host_bridge.is_some() && other.host_bridge.is_some();
        let bridges = (self.chain.len() + other.chain.len()).saturating_sub(2);
        let hops = complete.then(|| count(bridges)).flatten();
        Path {
            distance,
            hops,
            nccl: super::nccl_name(distance),
            source: DistanceSource::Sysfs,
        }
    }
}

fn count(functions: usize) -> Option<u32> {
    u32::try_from(functions).ok()
}
