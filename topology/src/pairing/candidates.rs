//! Which GPU may have which NIC at all, and what each choice costs.

use std::collections::{BTreeMap, BTreeSet};

use crate::distance::{Distance, DistanceSource, Path};
use crate::machine::{LinkLayer, Machine, Nic, NicRole};
use crate::paths::Paths;
use crate::pci::PciAddress;
use crate::policy::{ResourcePolicy, UnknownDistance};

/// Hops where the tree does not show them: behind every path that it shows.
const UNKNOWN_HOPS: i64 = 1 << 16;

/// What it costs to give one NIC to one GPU; every key counts before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EdgeCost {
    pub(super) hops: i64,
    pub(super) distance: i64,
    pub(super) layer: i64,
    pub(super) slowness: i64,
}

/// The machine as the assignment sees it.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    pub(super) gpus: BTreeSet<usize>,
    /// NIC → the card that it is on.
    pub(super) cards: BTreeMap<usize, Card>,
    /// (GPU, NIC) within the policy → cost.
    pub(super) edges: BTreeMap<(usize, usize), EdgeCost>,
}

/// RDMA devices with one card in common have one physical link or slot in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Card {
    /// PCI slot: domain, bus, and device number of the physical function.
    Slot(PciAddress),
    /// No PCI place: each device is its own card.
    Alone(usize),
}

impl Candidates {
    pub(super) fn new(machine: &Machine, paths: &Paths, policy: &ResourcePolicy) -> Self {
        let nics: Vec<&Nic> = machine
            .nics
            .iter()
            .filter(|nic| nic.role == NicRole::Compute)
            .collect();
        let fastest = nics.iter().map(|nic| rate(nic)).max().unwrap_or(0);
        let gpus: BTreeSet<usize> = machine.gpus.iter().map(|gpu| gpu.index).collect();
        let mut edges = BTreeMap::new();
        for nic in &nics {
            for &gpu in &gpus {
                let path = paths
                    .gpu_nic(gpu, nic.index)
                    .filter(|path| is_allowed(nic, path, policy));
                if let Some(path) = path {
                    edges.insert((gpu, nic.index), cost(nic, path, fastest));
                }
            }
        }
        Self {
            gpus,
            cards: nics.iter().map(|nic| (nic.index, card(nic))).collect(),
            edges,
        }
    }

    /// The candidates for further NICs: paired GPUs and NICs that no pair has.
    pub(super) fn without(&self, chosen: &super::Chosen) -> Self {
        let used: BTreeSet<usize> = chosen.values().flatten().copied().collect();
        let mut free = self.clone();
        free.edges
            .retain(|(gpu, nic), _| chosen.contains_key(gpu) && !used.contains(nic));
        free
    }

    pub(super) fn nics_of(&self, gpu: usize) -> impl Iterator<Item = usize> + '_ {
        self.edges
            .range((gpu, 0)..=(gpu, usize::MAX))
            .map(|((_, nic), _)| *nic)
    }

    pub(super) fn cost(&self, gpu: usize, nic: usize) -> Option<&EdgeCost> {
        self.edges.get(&(gpu, nic))
    }
}

/// Software devices have no PCI place; they count only where somebody stated a distance.
pub(super) fn is_allowed(nic: &Nic, path: &Path, policy: &ResourcePolicy) -> bool {
    let from_file = matches!(path.source, DistanceSource::TopologyFile(_));
    let placed = nic.pci.is_some() || path.source != DistanceSource::Sysfs;
    let within = match (path.distance, policy.unknown_distance) {
        (Distance::Unknown, UnknownDistance::ByOrder) => true,
        (Distance::Unknown, _) => false,
        (_, UnknownDistance::Refuse) if from_file => false,
        (distance, _) => distance <= policy.max_distance,
    };
    placed && within
}

fn cost(nic: &Nic, path: &Path, fastest: i64) -> EdgeCost {
    EdgeCost {
        hops: path.hops.map_or(UNKNOWN_HOPS, i64::from),
        distance: i64::from(path.distance.rank()),
        layer: layer(nic),
        slowness: fastest - rate(nic),
    }
}

/// InfiniBand before Ethernet before a link layer that nobody knows.
fn layer(nic: &Nic) -> i64 {
    let best = nic
        .ports
        .iter()
        .filter_map(|port| port.link_layer.known())
        .min();
    match best {
        Some(LinkLayer::InfiniBand) => 0,
        Some(LinkLayer::Ethernet) => 1,
        None => 2,
    }
}

/// The fastest port in Mb/s; 0 where no port tells.
fn rate(nic: &Nic) -> i64 {
    let best = nic
        .ports
        .iter()
        .filter_map(|port| port.rate_mbps.known())
        .max();
    best.map_or(0, |rate| i64::try_from(*rate).unwrap_or(i64::MAX / 2))
}

fn card(nic: &Nic) -> Card {
    nic.physfn
        .or(nic.pci)
        .map_or(Card::Alone(nic.index), |pci| {
            Card::Slot(pci.with_function(0))
        })
}
