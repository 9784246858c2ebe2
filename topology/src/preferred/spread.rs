//! Shared NICs: different NICs for one request, and each time the NIC with the most free replicas.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn choose(
    nics: &[String],
    must: &BTreeSet<usize>,
    free: &[usize],
    more: usize,
) -> BTreeSet<usize> {
    let mut chosen = must.clone();
    let mut queues: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for &device in free.iter().rev() {
        queues.entry(&nics[device]).or_default().push(device);
    }
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for &device in must {
        *taken.entry(&nics[device]).or_default() += 1;
    }
    for _ in 0..more {
        let rank = |nic: &str, left: usize| (taken.get(nic).copied().unwrap_or(0), Reverse(left));
        let open = queues.iter().filter(|(_, left)| !left.is_empty());
        let Some(nic) = open
            .min_by_key(|(nic, left)| rank(nic, left.len()))
            .map(|(nic, _)| *nic)
        else {
            break;
        };
        if let Some(device) = queues.get_mut(nic).and_then(Vec::pop) {
            chosen.insert(device);
            *taken.entry(nic).or_default() += 1;
        }
    }
    chosen
}
