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
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crds::node::NodeAddress;
use crds::reasons::NodeReason;
use ipnet::IpNet;

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
    let mut walks: HashMap<u32, Walk> = HashMap::new();
    let mut empty: HashMap<u32, Problem> = HashMap::new();
    let mut result = Allotted::default();
    for (index, ask) in asks.iter().enumerate() {
        let Some(range) = ranges.get(&ask.rail) else {
            continue;
        };
        let taken = kept.get(&index).copied();
        let take = || {
            let walk = walks.entry(ask.rail).or_insert_with(|| Walk::along(*range));
            walk.next_free(&mut used)
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
            && Hosts::of(*range).contains(given.addr())
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
    let hosts = Hosts::of(*range);
    let nodes = asks.iter().filter(|ask| ask.rail == rail).count();
    let others = foreign
        .iter()
        .filter(|address| hosts.contains(**address))
        .count();
    let message = format!(
        "no address on rail {rail}: {range} has {} addresses, {nodes} nodes ask, and {others} are in use elsewhere. Write a larger range in fabric.addresses; the nodes that have an address within it keep it only if its prefix length stays",
        hosts.count()
    );
    Problem {
        reason: NodeReason::AddressesExhausted,
        message,
    }
}

/// The addresses of a range that a host may have, as numbers.
#[derive(Clone, Copy, Debug)]
struct Hosts {
    v4: bool,
    first: u128,
    last: u128,
}

impl Hosts {
    fn of(range: IpNet) -> Self {
        let (first, last) = (number(range.network()), number(range.broadcast()));
        let spare = range.max_prefix_len() - range.prefix_len();
        let v4 = range.addr().is_ipv4();
        if spare < 2 {
            return Self { v4, first, last };
        }
        Self {
            v4,
            first: first.saturating_add(1),
            last: if v4 { last.saturating_sub(1) } else { last },
        }
    }

    fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.v4 && (self.first..=self.last).contains(&number(address))
    }

    fn count(&self) -> u128 {
        (self.last - self.first).saturating_add(1)
    }
}

/// A walk along the hosts of a range that never turns back.
struct Walk {
    v4: bool,
    rest: std::ops::RangeInclusive<u128>,
}

impl Walk {
    fn along(range: IpNet) -> Self {
        let Hosts { v4, first, last } = Hosts::of(range);
        Self {
            v4,
            rest: first..=last,
        }
    }

    fn next_free(&mut self, used: &mut HashSet<IpAddr>) -> Option<IpAddr> {
        let v4 = self.v4;
        let mut rest = self.rest.by_ref().filter_map(|number| address(v4, number));
        rest.find(|address| used.insert(*address))
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn address(v4: bool, number: u128) -> Option<IpAddr> {
    if v4 {
        let number = u32::try_from(number).ok()?;
        return Some(IpAddr::V4(Ipv4Addr::from(number)));
    }
    Some(IpAddr::V6(Ipv6Addr::from(number)))
}

#[cfg(test)]
mod tests;
