//! Openings that this agent made for ranges that are no longer asked for: each goes in the plan in which the new one comes. What
//! is ours the journal says, and the firewall must still show it. Pure.

use std::collections::BTreeSet;

use host::facts::tuning::firewall::Firewall;

use super::super::super::{Plan, World};
use super::{change, via};
use crate::action::{Change, Opening, TuningChange, Via};
use crate::firewall_rules::{is_ours, rich_rule, ufw_tuple};
use crate::journal::Changed;

/// Our openings whose range nobody asks for. None where a range that is asked for cannot be read: it may be meant by one of them.
pub(super) fn outdated<'a>(world: &World<'a>, firewall: &Firewall) -> Vec<(&'a Via, &'a Opening)> {
    let ranges = &world.desired.config.fabric.addresses;
    let Ok(asked) = ranges
        .iter()
        .map(|range| Opening::range(&range.cidr))
        .collect::<Result<BTreeSet<_>, _>>()
    else {
        return Vec::new();
    };
    let entries = world.memory.journal.changed.values();
    let made = entries.filter_map(|entry| made(entry, &world.state.boot_id));
    made.filter(|(_, opening)| !asked.contains(&opening.cidr()))
        .filter(|(via, opening)| is_there(firewall, via, opening))
        .collect()
}

fn made<'a>(entry: &'a Changed, boot_id: &str) -> Option<(&'a Via, &'a Opening)> {
    match &entry.done {
        Change::Tuning(TuningChange::Firewall {
            via,
            opening,
            open: true,
        }) if entry.may_be_there(boot_id) => Some((via, opening)),
        _ => None,
    }
}

/// Whether the firewall surely has our rule.
fn is_there(firewall: &Firewall, of: &Via, opening: &Opening) -> bool {
    match of {
        Via::Firewalld { zone } => {
            let firewalld = firewall.firewalld.known();
            let zones = firewalld.and_then(|firewalld| firewalld.zones.known());
            let mut own = zones.into_iter().flatten().filter(|one| one.name == *zone);
            own.any(|zone| zone.rich_rules.contains(&rich_rule(opening)))
        }
        Via::Ufw => {
            let rules = firewall.ufw.known();
            rules.is_some_and(|rules| rules.contains(&ufw_tuple(opening)))
        }
        Via::Nft { .. } => {
            let chains = firewall.input_chains.known().into_iter().flatten();
            let own = chains.filter(|chain| via(chain) == *of);
            let mut accepts = own.flat_map(|chain| &chain.accepts);
            accepts.any(|accept| is_ours(accept, opening))
        }
    }
}

/// The way back of each, after which the journal forgets it.
pub(super) fn close(plan: &mut Plan, world: &World<'_>, outdated: &[(&Via, &Opening)]) {
    for (via, opening) in outdated {
        let back = change(via, opening, false);
        let seen =
            format!("{via} lets in {opening}, for a range that fabric.addresses no longer names");
        let undo = Some(back.clone());
        plan.act(back, seen, world.memory, world.now).undo = undo;
    }
}
