//! The best set of up to [`EXACT`] devices: every set is looked at that can still be the best.
//!
//! What a set is worth is a sum over its pairs, and what it takes from those that stay is a sum over its devices, so both
//! are numbers that grow with each device, and a few of the smallest terms say what a part of a set comes to at least. A
//! part that cannot come below the best set so far is left; a guess gives the first such set.

use std::collections::BTreeSet;

use super::{EXACT, Link};

/// Levels of PCIe distance.
const LEVELS: u32 = 6;
/// `NVLink` connections of a pair: more than these count as these. GPUs have up to 18.
const NVLINKS: i64 = 127;
/// Bits of a count of pairs inside a set: 120 at most.
const PAIRS: u32 = 7;
/// Bits of a count of links from a set: 240 at most.
const ENDS: u32 = 8;

/// One number for each device.
type Row = [u64; EXACT];

/// A pair inside a set; less is better. First `NVLink` connections, then the farthest level: one pair across the sockets costs
/// more than any number of near ones gain. The sum of all pairs has 63 bits.
fn inside(link: Link) -> u64 {
    let missing = (NVLINKS - link.nvlinks.clamp(0, NVLINKS)).unsigned_abs();
    let level = 1 << (PAIRS * (1 + u32::from(link.distance.rank())));
    missing << (PAIRS * (1 + LEVELS)) | level | u64::from(link.across_numa)
}

/// A link of a chosen device, which is lost to those that stay; less is better. First `NVLink` connections, then the closest
/// level: the tightest groups are kept whole. The sum of all links has 63 bits.
fn taken(link: Link) -> u64 {
    let lost = link.nvlinks.clamp(0, NVLINKS).unsigned_abs();
    let level = 1 << (ENDS * (LEVELS - 1 - u32::from(link.distance.rank())));
    lost << (ENDS * LEVELS) | level
}

/// The best set: what must be in it, and `more` of the free ones. Among equals the first in the order of the ids.
pub(super) fn choose(
    links: &[Vec<Link>],
    must: &BTreeSet<usize>,
    free: &[usize],
    more: usize,
) -> BTreeSet<usize> {
    let mut search = Search::new(links, must, free);
    search.best = search.guess(more);
    search.extend(&Part {
        from: 0,
        more,
        score: Score::default(),
        cost: search.alone,
        chosen: 0,
    });
    let best = search.found.unwrap_or_default();
    let chosen = free
        .iter()
        .enumerate()
        .filter(|(at, _)| best >> at & 1 == 1);
    must.iter()
        .copied()
        .chain(chosen.map(|(_, device)| *device))
        .collect()
}

/// How bad a set is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    inside: u64,
    taken: u64,
}

/// A part of a set: devices are added in their order.
struct Part {
    from: usize,
    more: usize,
    score: Score,
    /// What each further device costs inside, with those that are chosen.
    cost: Row,
    chosen: u32,
}

struct Search {
    count: usize,
    /// What each free device costs with those that must be in the set.
    alone: Row,
    between: [Row; EXACT],
    /// Sums of the smallest of `between`, by how many.
    near: [Row; EXACT],
    taken: Row,
    best: Score,
    found: Option<u32>,
}

impl Search {
    fn new(links: &[Vec<Link>], must: &BTreeSet<usize>, free: &[usize]) -> Self {
        let none = [0; EXACT];
        let mut search = Self {
            count: free.len(),
            alone: none,
            between: [none; EXACT],
            near: [none; EXACT],
            taken: none,
            best: Score::default(),
            found: None,
        };
        for (at, &device) in free.iter().enumerate() {
            let others = free.iter().enumerate().filter(|(other, _)| *other != at);
            let mut near = Vec::with_capacity(EXACT);
            for (other, &to) in others {
                let link = links[device][to];
                search.between[at][other] = inside(link);
                search.taken[at] += taken(link);
                near.push(inside(link));
            }
            for &to in must {
                search.alone[at] += inside(links[device][to]);
                search.taken[at] += taken(links[device][to]);
            }
            near.sort_unstable();
            for (number, next) in near.into_iter().enumerate() {
                search.near[at][number + 1] = search.near[at][number] + next;
            }
        }
        search
    }

    /// The best of the sets that begin with one device and go on with what costs least.
    fn guess(&self, more: usize) -> Score {
        let sets = (0..self.count).map(|first| self.grow(first, more));
        sets.min().filter(|_| more > 0).unwrap_or_default()
    }

    fn grow(&self, first: usize, more: usize) -> Score {
        let (mut score, mut cost) = (Score::default(), self.alone);
        let mut next = first;
        let mut left: u32 = (1 << self.count) - 1;
        for _ in 0..more {
            score.inside += cost[next];
            score.taken += self.taken[next];
            left &= !(1 << next);
            for (cost, between) in cost.iter_mut().zip(&self.between[next]) {
                *cost += between;
            }
            let rest = (0..self.count).filter(|at| left >> at & 1 == 1);
            next = rest
                .min_by_key(|at| (cost[*at], self.taken[*at]))
                .unwrap_or(first);
        }
        score
    }

    fn extend(&mut self, part: &Part) {
        if part.more == 0 {
            if part.score < self.best || self.found.is_none() && part.score == self.best {
                (self.best, self.found) = (part.score, Some(part.chosen));
            }
            return;
        }
        if self.is_hopeless(part) {
            return;
        }
        for at in part.from..=self.count - part.more {
            if part.score.inside + part.cost[at] > self.best.inside {
                continue;
            }
            let mut cost = part.cost;
            for (cost, between) in cost.iter_mut().zip(&self.between[at]) {
                *cost += between;
            }
            self.extend(&Part {
                from: at + 1,
                more: part.more - 1,
                score: Score {
                    inside: part.score.inside + part.cost[at],
                    taken: part.score.taken + self.taken[at],
                },
                cost,
                chosen: part.chosen | 1 << at,
            });
        }
    }

    /// Whether no set with this part is better than the best so far. Each pair of two further devices is counted from both
    /// ends, so all of it is counted twice.
    fn is_hopeless(&self, part: &Part) -> bool {
        let further = part.from..self.count;
        let cost = |at: usize| 2 * part.cost[at] + self.near[at][part.more - 1];
        let inside = 2 * part.score.inside + least(further.clone().map(cost), part.more);
        if inside != 2 * self.best.inside {
            return inside > 2 * self.best.inside;
        }
        let taken = part.score.taken + least(further.map(|at| self.taken[at]), part.more);
        taken > self.best.taken || self.found.is_some() && taken == self.best.taken
    }
}

/// Sum of the smallest.
fn least(numbers: impl Iterator<Item = u64>, how_many: usize) -> u64 {
    let mut row: Row = [u64::MAX; EXACT];
    for (place, number) in row.iter_mut().zip(numbers) {
        *place = number;
    }
    row.sort_unstable();
    row.iter().take(how_many).sum()
}
