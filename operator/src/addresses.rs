//! Which address a node has on each rail. Pure; [`crate::network`] calls it for the nodes of one cluster.
//!
//! An address that a node has stays as long as it may: within the range, a host's, and nobody else's. New ones are the
//! lowest that nobody has, in the order of nodes and rails, so that the same world gives the same answer. What one pass
//! frees, it does not give to another node: the first one's agent still has to take it off. One walk along each range
//! serves all nodes: the work grows with the number of addresses, not with its square.
//!
//! Which addresses are no host's: of IPv4 the first and the last, but for /31 (RFC 3021) and /32; of IPv6 the first, the
//! routers' anycast address (RFC 4291, 2.6.1), but for /127 (RFC 6164) and /128.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use crds::node::NodeAddress;
use crds::reasons::NodeReason;
use ipnet::{IpAddrRange, IpNet};

use crate::rails::Problem;

/// What a node asks for on one rail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask<'a> {
    /// The node.
    pub node: &'a str,
    /// The rail.
    pub rail: u32,
    /// What it has.
    pub given: Option<IpNet>,
    /// Whether it may get a new one now: its agent has looked at what is in use there.
    pub may_take: bool,
}

/// Who gets what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allotted {
    /// Addresses by node, in the order of rails.
    pub addresses: BTreeMap<String, Vec<NodeAddress>>,
    /// Nodes that get none on some rail.
    pub problems: BTreeMap<String, Problem>,
}

/// Allots addresses. `foreign` are those that nobody who asks may have; `leaving` are those that nodes are about to lose.
#[must_use]
pub(crate) fn allot(
    ranges: &BTreeMap<u32, IpNet>,
    foreign: &HashSet<IpAddr>,
    leaving: &HashSet<IpAddr>,
    mut asks: Vec<Ask<'_>>,
) -> Allotted {
    asks.sort_unstable();
    asks.dedup_by(|a, b| (a.node, a.rail) == (b.node, b.rail));
    let mut used: HashSet<IpAddr> = foreign.clone();
    let kept = keep(ranges, &mut used, &asks);
    used.extend(leaving);
    used.extend(asks.iter().filter_map(|ask| Some(ask.given?.addr())));
    let mut walks: HashMap<u32, IpAddrRange> = HashMap::new();
    let mut empty: HashMap<u32, Problem> = HashMap::new();
    let mut result = Allotted::default();
    for (index, ask) in asks.iter().enumerate() {
        let Some(range) = ranges.get(&ask.rail) else {
            continue;
        };
        let taken = kept.get(&index).copied();
        let take = || {
            let walk = walks.entry(ask.rail).or_insert_with(|| range.hosts());
            walk.find(|address| is_host(range, *address) && used.insert(*address))
        };
        let new = taken.is_none() && ask.may_take;
        match taken.or_else(|| new.then(take).flatten()) {
            Some(address) => push(&mut result, ask, range, address),
            None if new => {
                let said = || exhausted(range, ask.rail, &asks, foreign);
                let problem = empty.entry(ask.rail).or_insert_with(said).clone();
                result
                    .problems
                    .entry(ask.node.to_owned())
                    .or_insert(problem);
            }
            None => {}
        }
    }
    result
}

/// By the index of the ask, the addresses that stay. Of two nodes with one address the first by name keeps it.
fn keep(
    ranges: &BTreeMap<u32, IpNet>,
    used: &mut HashSet<IpAddr>,
    asks: &[Ask<'_>],
) -> HashMap<usize, IpAddr> {
    let mut kept = HashMap::new();
    for (index, ask) in asks.iter().enumerate() {
        if let (Some(range), Some(given)) = (ranges.get(&ask.rail), ask.given)
            && given.trunc() == range.trunc()
            && is_host(range, given.addr())
            && used.insert(given.addr())
        {
            kept.insert(index, given.addr());
        }
    }
    kept
}

fn push(result: &mut Allotted, ask: &Ask<'_>, range: &IpNet, address: IpAddr) {
    let addresses = result.addresses.entry(ask.node.to_owned()).or_default();
    addresses.push(NodeAddress {
        rail: ask.rail,
        address: format!("{address}/{}", range.prefix_len()),
    });
}

fn exhausted(range: &IpNet, rail: u32, asks: &[Ask<'_>], foreign: &HashSet<IpAddr>) -> Problem {
    let nodes = asks.iter().filter(|ask| ask.rail == rail).count();
    let others = foreign
        .iter()
        .filter(|address| is_host(range, **address))
        .count();
    let message = format!(
        "no address on rail {rail}: {range} has {} addresses, {nodes} nodes ask, and {others} are in use elsewhere. Write a larger range in fabric.addresses; the nodes that have an address within it keep it only if its prefix length stays",
        count(range)
    );
    Problem {
        reason: NodeReason::AddressesExhausted,
        message,
    }
}

/// Whether a host may have the address.
fn is_host(range: &IpNet, address: IpAddr) -> bool {
    let last = address.is_ipv4() && address == range.broadcast();
    range.contains(&address) && (spare(range) < 2 || !(last || address == range.network()))
}

/// How many addresses hosts may have.
fn count(range: &IpNet) -> u128 {
    let all = 1_u128.checked_shl(spare(range)).unwrap_or(u128::MAX);
    let special = match (spare(range), range.addr().is_ipv4()) {
        (0 | 1, _) => 0,
        (_, true) => 2,
        (_, false) => 1,
    };
    all - special
}

/// Bits of the address that are the host's.
fn spare(range: &IpNet) -> u32 {
    u32::from(range.max_prefix_len() - range.prefix_len())
}

#[cfg(test)]
mod tests;
