//! What makes a set of devices better than another, and the greedy search above [`super::EXACT`] devices.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::Link;
use crate::distance::Distance;

/// Levels of PCIe distance.
const LEVELS: usize = 6;

/// Sums over the pairs of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    nvlinks: i64,
    /// Pairs at each distance, closest first.
    at: [i64; LEVELS],
    across_numa: i64,
}

/// How bad a set is inside; less is better.
type Inside = (Reverse<i64>, [i64; LEVELS], i64);
/// How bad what remains is; less is better.
type Remaining = (Reverse<i64>, [Reverse<i64>; LEVELS]);

impl Sums {
    fn add(&mut self, link: Link) {
        self.nvlinks += link.nvlinks;
        self.at[usize::from(link.distance.rank())] += 1;
        self.across_numa += i64::from(link.across_numa);
    }

    /// Farthest level first: one pair across the sockets costs more than any number of near ones gain. PIX comes last
    /// and never decides, as the number of pairs is fixed.
    pub(super) fn inside(&self) -> Inside {
        let mut far_first = self.at;
        far_first.reverse();
        (Reverse(self.nvlinks), far_first, self.across_numa)
    }

    /// Closest level first: keep the tightest groups whole.
    pub(super) fn remaining(&self) -> Remaining {
        (Reverse(self.nvlinks), self.at.map(Reverse))
    }
}

/// Sums over every two devices of a set, for the tests' own search.
#[cfg(test)]
pub(super) fn sums(links: &[Vec<Link>], set: &[usize]) -> Sums {
    let mut sums = Sums::default();
    for (at, &a) in set.iter().enumerate() {
        for &b in &set[at + 1..] {
            sums.add(links[a][b]);
        }
    }
    sums
}

/// Adds one device at a time: the one that connects best to what is chosen, and least to what stays. The first is the
/// one with the best `more` − 1 neighbours.
pub(super) fn greedy(
    links: &[Vec<Link>],
    must: &BTreeSet<usize>,
    free: &[usize],
    more: usize,
) -> BTreeSet<usize> {
    let mut chosen = must.clone();
    let mut rest: Vec<usize> = free.to_vec();
    for _ in 0..more {
        let best = if chosen.is_empty() && more > 1 {
            seed(links, &rest, more)
        } else {
            next(links, &chosen, &rest)
        };
        let Some(best) = best else { break };
        chosen.insert(best);
        rest.retain(|device| *device != best);
    }
    chosen
}

fn seed(links: &[Vec<Link>], rest: &[usize], size: usize) -> Option<usize> {
    let neighbourhood = |device: usize| {
        let mut near: Vec<Inside> = rest
            .iter()
            .filter(|other| **other != device)
            .map(|other| link_sums(links, device, &[*other]).inside())
            .collect();
        near.sort_unstable();
        near.truncate(size - 1);
        near
    };
    rest.iter()
        .copied()
        .min_by_key(|device| (neighbourhood(*device), *device))
}

fn next(links: &[Vec<Link>], chosen: &BTreeSet<usize>, rest: &[usize]) -> Option<usize> {
    let chosen: Vec<usize> = chosen.iter().copied().collect();
    let gain = |device: usize| link_sums(links, device, &chosen).inside();
    let loss = |device: usize| {
        let others: Vec<usize> = rest
            .iter()
            .filter(|other| **other != device)
            .copied()
            .collect();
        Reverse(link_sums(links, device, &others).remaining())
    };
    rest.iter()
        .copied()
        .min_by_key(|device| (gain(*device), loss(*device), *device))
}

fn link_sums(links: &[Vec<Link>], device: usize, others: &[usize]) -> Sums {
    let mut sums = Sums::default();
    for &other in others {
        sums.add(links[device][other]);
    }
    sums
}

const _: () = assert!(
    Distance::Unknown as usize == LEVELS - 1,
    "one level for every distance"
);
