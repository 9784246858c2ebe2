//! Which GPU gets which NICs.
//!
//! Pure and exact: of all assignments it returns the best by this order, and always the same one: most pairs within
//! `max_distance`, fewest shared, smallest worst distance, fewest hops, smallest sum of distances, best link (layer,
//! then rate), most distinct cards, even load, index order. Min-cost flow over costs that are compared key by key
//! finds it (`flow`); the worst distance, which is no sum, is found by raising a limit.
//!
//! The state of a port has no part in it. The result is persisted as the node's partition, and a cable that is pulled
//! must not move GPUs to other NICs: it only marks the device Unhealthy.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::distance::Distance;
use crate::machine::Machine;
use crate::paths::Paths;
use crate::policy::ResourcePolicy;
use candidates::Candidates;

mod assign;
mod candidates;
mod flow;
mod reason;

/// The pairs of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pairing {
    /// GPUs with their NICs, in the order of the GPU index.
    pub pairs: Vec<Pair>,
    /// GPUs without one, in the order of the GPU index.
    pub unpaired: Vec<Unpaired>,
}

/// A GPU and its NICs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pair {
    /// Index of the GPU.
    pub gpu: usize,
    /// Indices of its NICs, best first; at least one.
    pub nics: Vec<usize>,
    /// Distance to the first NIC.
    pub distance: Distance,
    /// Whether another pair has the first NIC too.
    pub shared: bool,
    /// Why this NIC.
    pub reason: String,
}

/// A GPU that no NIC could be given to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unpaired {
    /// Index of the GPU.
    pub gpu: usize,
    /// Why, and what would help.
    pub reason: String,
}

/// Pairs the GPUs of a machine with its NICs.
#[must_use]
pub fn pair(machine: &Machine, paths: &Paths, policy: &ResourcePolicy) -> Pairing {
    let candidates = Candidates::new(machine, paths, policy);
    let chosen = choose(&candidates, policy);
    let context = reason::Context {
        machine,
        paths,
        policy,
        candidates: &candidates,
        chosen: &chosen,
    };
    let (paired, rest): (BTreeSet<usize>, BTreeSet<usize>) = candidates
        .gpus
        .iter()
        .partition(|gpu| chosen.contains_key(gpu));
    Pairing {
        pairs: paired
            .into_iter()
            .filter_map(|gpu| build(&context, gpu))
            .collect(),
        unpaired: rest
            .into_iter()
            .map(|gpu| Unpaired {
                gpu,
                reason: reason::unpaired(&context, gpu),
            })
            .collect(),
    }
}

/// GPU → NICs, best first.
type Chosen = BTreeMap<usize, Vec<usize>>;

/// The first NIC of every GPU, then, while more are wanted, at most one further unused NIC for each per round, so that
/// further NICs are spread evenly.
fn choose(candidates: &Candidates, policy: &ResourcePolicy) -> Chosen {
    let first = assign::best(candidates, assign::Sharing::from(policy.nic_sharing));
    let mut chosen: Chosen = first
        .into_iter()
        .map(|(gpu, nic)| (gpu, vec![nic]))
        .collect();
    for _ in 1..policy.nics_per_gpu {
        let free = candidates.without(&chosen);
        let more = assign::best(&free, assign::Sharing::Never);
        if more.is_empty() {
            break;
        }
        for (gpu, nic) in more {
            chosen.entry(gpu).or_default().push(nic);
        }
    }
    chosen
}

fn build(context: &reason::Context<'_>, gpu: usize) -> Option<Pair> {
    let nics = context.chosen.get(&gpu)?.clone();
    let first = *nics.first()?;
    Some(Pair {
        gpu,
        distance: context.paths.distance(gpu, first),
        shared: !context.sharers(gpu, first).is_empty(),
        reason: reason::paired(context, gpu, &nics),
        nics,
    })
}

#[cfg(test)]
mod tests;
