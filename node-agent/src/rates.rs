//! The rate of each NIC, as it counts for ties between NICs and for `minRate`. Pure; [`crate::decide`] calls it.
//!
//! A port that is down shows a rate all the same, often the slowest that it knows: that would move GPUs to other NICs
//! each time a cable is pulled. So the highest rate that a NIC ever had while it carried traffic counts, and is remembered
//! in the partition's file. Of a NIC that never did nothing is known; that takes no pair away from it, and brings it none.

use std::collections::{BTreeMap, BTreeSet};

use topology::fact::Fact;
use topology::machine::{Machine, Nic, Port, PortState};
use topology::partition::nic_key;

/// Key of a NIC → the highest rate in Mb/s that it was seen to have.
pub type Rates = BTreeMap<String, u64>;

/// What is known once the ports of `machine` were looked at.
#[must_use]
pub fn learn(machine: &Machine, before: &Rates) -> Rates {
    let mut rates = before.clone();
    for nic in &machine.nics {
        let best = nic.ports.iter().filter_map(active_rate).max();
        if let Some(rate) = best.filter(|rate| *rate > 0) {
            let known = rates.entry(nic_key(machine, nic)).or_default();
            *known = rate.max(*known);
        }
    }
    rates
}

fn active_rate(port: &Port) -> Option<u64> {
    match port.state.known()? {
        PortState::Active | PortState::ActiveDefer => port.rate_mbps.known().copied(),
        PortState::Down | PortState::Init | PortState::Armed => None,
    }
}

/// Gives every NIC the rate that is known of it, and no other.
pub fn set(machine: &mut Machine, rates: &Rates) {
    let keys = keys(machine);
    for (nic, key) in machine.nics.iter_mut().zip(keys) {
        give(nic, rates.get(&key).copied());
    }
}

/// Makes the NICs of kept pairs whose rate is not known the fastest: not knowing it is no reason to leave them.
pub fn prefer(machine: &mut Machine, paired: &BTreeSet<String>) {
    let rates = machine.nics.iter().flat_map(|nic| &nic.ports);
    let fastest = rates.filter_map(|port| port.rate_mbps.known()).max();
    let faster = fastest.map_or(1, |rate| rate.saturating_add(1));
    let keys = keys(machine);
    for (nic, key) in machine.nics.iter_mut().zip(keys) {
        if paired.contains(&key) && !is_known(nic) {
            give(nic, Some(faster));
        }
    }
}

/// Whether a port tells a rate.
#[must_use]
pub fn is_known(nic: &Nic) -> bool {
    nic.ports
        .iter()
        .any(|port| port.rate_mbps.known().is_some())
}

fn keys(machine: &Machine) -> Vec<String> {
    let nics = machine.nics.iter();
    nics.map(|nic| nic_key(machine, nic)).collect()
}

fn give(nic: &mut Nic, rate: Option<u64>) {
    for port in &mut nic.ports {
        port.rate_mbps = Fact::from(rate);
    }
}

#[cfg(test)]
mod tests;
