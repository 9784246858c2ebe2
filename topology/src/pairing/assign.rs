//! The best assignment of one NIC to every GPU.

use std::collections::BTreeMap;

use super::candidates::{Candidates, Card, EdgeCost};
use super::flow::{Cost, Network};
use crate::policy::NicSharing;

/// Whether a NIC may go to several GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Where that gives more pairs.
    WhenScarce,
    /// Never.
    Never,
}

impl From<NicSharing> for Sharing {
    fn from(policy: NicSharing) -> Self {
        match policy {
            NicSharing::WhenScarce => Self::WhenScarce,
            NicSharing::Never => Self::Never,
        }
    }
}

/// GPU → NIC.
pub(super) type Assignment = BTreeMap<usize, usize>;

/// The best assignment: the smallest worst distance that allows as many pairs and as few shared ones as no limit at
/// all, and within it the least cost.
pub(super) fn best(candidates: &Candidates, sharing: Sharing) -> Assignment {
    let farthest = candidates
        .edges
        .values()
        .map(|cost| cost.distance)
        .max()
        .unwrap_or(0);
    let goal = Goal::of(&solve(candidates, sharing, farthest, Detail::Sharing));
    let reaches =
        |limit: &i64| Goal::of(&solve(candidates, sharing, *limit, Detail::Sharing)) == goal;
    let limit = (0..farthest).find(reaches).unwrap_or(farthest);
    solve(candidates, sharing, limit, Detail::All)
}

#[derive(Debug, PartialEq, Eq)]
struct Goal {
    pairs: usize,
    distinct_nics: usize,
}

impl Goal {
    fn of(assignment: &Assignment) -> Self {
        let nics: std::collections::BTreeSet<_> = assignment.values().collect();
        Self {
            pairs: assignment.len(),
            distinct_nics: nics.len(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Sharing,
    All,
}

/// Builds the network source → GPU → NIC → card → sink and solves it. Parallel edges out of a NIC and out of a card
/// have rising costs, so that a further unit on the same NIC (card) costs more than the first on another.
fn solve(candidates: &Candidates, sharing: Sharing, limit: i64, detail: Detail) -> Assignment {
    let plan = Plan::new(candidates, sharing, detail);
    let mut network = Network::with_nodes(plan.sink + 1);
    for at in 0..plan.gpus.len() {
        network.connect(0, Plan::gpu_node(at), Cost::default());
    }
    let chosen = plan.connect_candidates(&mut network, candidates, limit);
    plan.connect_nics(&mut network);
    plan.connect_cards(&mut network);
    network.saturate(0, plan.sink);
    let used = chosen
        .into_iter()
        .filter(|(edge, ..)| network.is_used(*edge));
    used.map(|(_, gpu, nic)| (gpu, nic)).collect()
}

/// Numbering of the nodes, and the costs.
struct Plan<'a> {
    gpus: Vec<usize>,
    nics: Vec<(usize, &'a Card)>,
    cards: Vec<&'a Card>,
    sink: usize,
    /// Units that one NIC can carry.
    capacity: usize,
    detail: Detail,
}

impl<'a> Plan<'a> {
    fn new(candidates: &'a Candidates, sharing: Sharing, detail: Detail) -> Self {
        let gpus: Vec<usize> = candidates.gpus.iter().copied().collect();
        let nics: Vec<(usize, &Card)> = candidates
            .cards
            .iter()
            .map(|(nic, card)| (*nic, card))
            .collect();
        let mut cards: Vec<&Card> = candidates.cards.values().collect();
        cards.sort();
        cards.dedup();
        let capacity = if sharing == Sharing::Never {
            1
        } else {
            gpus.len()
        };
        let sink = 1 + gpus.len() + nics.len() + cards.len();
        Self {
            gpus,
            nics,
            cards,
            sink,
            capacity,
            detail,
        }
    }

    fn gpu_node(at: usize) -> usize {
        1 + at
    }

    fn nic_node(&self, at: usize) -> usize {
        1 + self.gpus.len() + at
    }

    fn card_node(&self, at: usize) -> usize {
        1 + self.gpus.len() + self.nics.len() + at
    }

    fn connect_candidates(
        &self,
        network: &mut Network,
        candidates: &Candidates,
        limit: i64,
    ) -> Vec<(usize, usize, usize)> {
        let mut edges = Vec::new();
        for (g, &gpu) in self.gpus.iter().enumerate() {
            for (n, &(nic, _)) in self.nics.iter().enumerate() {
                if let Some(cost) = candidates
                    .cost(gpu, nic)
                    .filter(|cost| cost.distance <= limit)
                {
                    let edge = network.connect(
                        Self::gpu_node(g),
                        self.nic_node(n),
                        self.choice(cost, g, n),
                    );
                    edges.push((edge, gpu, nic));
                }
            }
        }
        edges
    }

    /// Keys: 0 shared, 1 hops, 2 distance, 3 layer, 4 slowness, 5 cards, 6 load, then the NIC's position for each GPU
    /// in index order. Positions count from below zero, so that a GPU of a low index goes without a NIC last.
    fn choice(&self, cost: &EdgeCost, g: usize, n: usize) -> Cost {
        if self.detail == Detail::Sharing {
            return Cost::default();
        }
        let mut keys = vec![0, cost.hops, cost.distance, cost.layer, cost.slowness, 0, 0];
        keys.resize(7 + g, 0);
        keys.push(as_key(n) - as_key(self.nics.len()));
        Cost(keys)
    }

    fn connect_nics(&self, network: &mut Network) {
        for (n, (_, card)) in self.nics.iter().enumerate() {
            let card_at = self.cards.binary_search(card).unwrap_or_default();
            for unit in 0..self.capacity {
                let shared = i64::from(unit > 0);
                let load = as_key(2 * unit + 1); // sums to the square of the load
                let keys = if self.detail == Detail::Sharing {
                    vec![shared]
                } else {
                    vec![shared, 0, 0, 0, 0, 0, load]
                };
                network.connect(self.nic_node(n), self.card_node(card_at), Cost(keys));
            }
        }
    }

    fn connect_cards(&self, network: &mut Network) {
        for (c, card) in self.cards.iter().enumerate() {
            let nics = self.nics.iter().filter(|(_, of)| of == card).count();
            for unit in 0..(nics * self.capacity).min(self.gpus.len()) {
                let more = if self.detail == Detail::Sharing {
                    0
                } else {
                    i64::from(unit > 0)
                };
                network.connect(
                    self.card_node(c),
                    self.sink,
                    Cost(vec![0, 0, 0, 0, 0, more]),
                );
            }
        }
    }
}

fn as_key(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
