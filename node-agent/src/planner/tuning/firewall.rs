//! What the host's firewall must let in: NCCL's bootstrap from the rails' ranges, and soft-RoCE where there is a software device.
//! RoCE of hardware never meets it. It is opened through whoever keeps it: an accept in a table of ours could not overrule
//! another table's drop. Pure.

use std::collections::BTreeSet;

use crds::fabric::Firewall as Mode;
use host::facts::tuning::firewall::{Accept, Firewall, Firewalld, InputChain, Packets, Zone};
use topology::fact::Fact;
use topology::machine::NicRole;

use super::super::{Plan, World};
use super::tuning;
use crate::action::{Change, Opening, Protocol, TuningChange, Via};
use crate::findings::FindingId;
use crate::firewall_rules::{self, is_ours};

mod outdated;

/// NCCL listens on a port that the kernel picks, launchers on one above 1024.
const BOOTSTRAP: (u16, u16) = (1024, 65535);
/// RoCE version 2 (IANA `roce`).
const ROCE: (u16, u16) = (4791, 4791);
const COMPONENT: &str = "firewall";

pub(super) fn open(plan: &mut Plan, world: &World<'_>, mode: Mode) {
    let firewall = &tuning(world.state).firewall;
    let openings = openings(plan, world);
    let outdated = match mode {
        Mode::Manage => outdated::outdated(world, firewall),
        Mode::Report => Vec::new(),
    };
    for via in managers(plan, world, firewall, &openings) {
        for opening in &openings {
            if lets_in(firewall, &via, opening, &outdated) {
                plan.met.insert(change(&via, opening, true));
            } else {
                closed(plan, world, mode, &via, opening);
            }
        }
    }
    // Last: the new rule is there before the old one goes.
    outdated::close(plan, world, &outdated);
}

fn change(via: &Via, opening: &Opening, open: bool) -> Change {
    Change::Tuning(TuningChange::Firewall {
        via: via.clone(),
        opening: opening.clone(),
        open,
    })
}

fn openings(plan: &mut Plan, world: &World<'_>) -> Vec<Opening> {
    let ranges = &world.desired.config.fabric.addresses;
    if ranges.is_empty() {
        let message = "fabric.firewall is set and fabric.addresses names no range: there is nothing to let in";
        plan.find(FindingId::FirewallWithoutRange, COMPONENT, message);
    }
    let mut wanted = vec![(Protocol::Tcp, BOOTSTRAP)];
    if !tuning(world.state).soft_roce.is_empty() {
        wanted.push((Protocol::Udp, ROCE));
    }
    let mut openings = BTreeSet::new();
    for (index, range) in ranges.iter().enumerate() {
        for (protocol, ports) in &wanted {
            match Opening::new(&range.cidr, *protocol, *ports) {
                Ok(opening) => _ = openings.insert(opening),
                Err(error) => {
                    let field = format!("fabric.addresses[{index}].cidr");
                    plan.find(FindingId::InvalidSpec, field, error.to_string());
                }
            }
        }
    }
    openings.into_iter().collect()
}

/// Whoever may drop: each of them must let packets in.
fn managers(
    plan: &mut Plan,
    world: &World<'_>,
    firewall: &Firewall,
    openings: &[Opening],
) -> BTreeSet<Via> {
    let mut managers = BTreeSet::new();
    match &firewall.firewalld {
        Fact::Known(firewalld) => managers.extend(zones(plan, world, firewalld)),
        Fact::Absent => {}
        Fact::Unreadable(why) => plan.find(FindingId::HostUnreadable, "firewalld", why),
    }
    match &firewall.ufw {
        Fact::Known(_) => _ = managers.insert(Via::Ufw),
        Fact::Absent => {}
        Fact::Unreadable(why) => plan.find(FindingId::HostUnreadable, "ufw", why),
    }
    match &firewall.input_chains {
        Fact::Known(chains) => {
            let dropping = chains.iter().filter(|chain| chain.drops);
            managers.extend(
                dropping
                    .filter(|chain| !is_of_manager(firewall, chain))
                    .map(via),
            );
        }
        Fact::Absent => {}
        Fact::Unreadable(why) => plan.find(FindingId::HostUnreadable, "nftables", why),
    }
    if let Fact::Known(tables) = &firewall.legacy_tables
        && tables.iter().any(|table| table == "filter")
    {
        legacy(plan, openings);
    }
    managers
}

/// What legacy iptables does with packets is not listed by nftables.
fn legacy(plan: &mut Plan, openings: &[Opening]) {
    let commands = openings.iter().map(firewall_rules::legacy_command);
    let commands: Vec<String> = commands.map(|command| format!("`{command}`")).collect();
    let message = format!(
        "legacy iptables filters beside nftables and is not judged. Where `iptables-legacy -S INPUT` shows that it drops: {}",
        commands.join(", ")
    );
    plan.find(FindingId::FirewallNotManaged, "iptables-legacy", message);
}

fn via(chain: &InputChain) -> Via {
    Via::Nft {
        family: chain.family.clone(),
        table: chain.table.clone(),
        chain: chain.name.clone(),
    }
}

/// firewalld's own table, and the tables that ufw fills by iptables.
fn is_of_manager(firewall: &Firewall, chain: &InputChain) -> bool {
    let by_iptables = is_iptables(&via(chain));
    let has_ufw = firewall.ufw.known().is_some();
    let has_firewalld = firewall.firewalld.known().is_some();
    (has_firewalld && (chain.table == "firewalld" || by_iptables)) || (has_ufw && by_iptables)
}

/// The zones of the compute NICs' interfaces.
fn zones(plan: &mut Plan, world: &World<'_>, firewalld: &Firewalld) -> BTreeSet<Via> {
    let zones = match &firewalld.zones {
        Fact::Known(zones) => zones,
        Fact::Absent => return BTreeSet::new(),
        Fact::Unreadable(why) => {
            plan.find(FindingId::HostUnreadable, "firewalld", why);
            return BTreeSet::new();
        }
    };
    let compute = world
        .machine
        .nics
        .iter()
        .filter(|nic| nic.role == NicRole::Compute);
    let of = |netdev: &String| {
        let zone = zones.iter().find(|zone| zone.interfaces.contains(netdev));
        zone.map_or_else(|| firewalld.default_zone.clone(), |zone| zone.name.clone())
    };
    let names = compute.flat_map(|nic| nic.netdevs.iter()).map(of);
    names.map(|zone| Via::Firewalld { zone }).collect()
}

/// Whether `via` surely lets the packets in.
fn lets_in(
    firewall: &Firewall,
    via: &Via,
    opening: &Opening,
    outdated: &[(&Via, &Opening)],
) -> bool {
    match via {
        Via::Firewalld { zone } => {
            let zones = firewall
                .firewalld
                .known()
                .and_then(|firewalld| firewalld.zones.known());
            let found = zones.and_then(|zones| zones.iter().find(|one| one.name == *zone));
            found.is_some_and(|zone| zone_lets_in(zone, opening))
        }
        Via::Ufw => {
            let rule = firewall_rules::ufw_tuple(opening);
            firewall
                .ufw
                .known()
                .is_some_and(|rules| rules.contains(&rule))
        }
        Via::Nft { family, .. } => {
            // A chain of the other family never meets these packets.
            let other = if opening.is_v4() { "ip6" } else { "ip" };
            let chains = firewall.input_chains.known().into_iter().flatten();
            let own = chains.filter(|chain| self::via(chain) == *via);
            let goes = |accept: &&Accept| {
                let is = |(of, old): &(&Via, &Opening)| *of == via && is_ours(accept, old);
                outdated.iter().any(is)
            };
            let mut stays = own.flat_map(|chain| &chain.accepts).filter(|a| !goes(a));
            family == other || stays.any(|accept| takes(accept, opening))
        }
    }
}

fn zone_lets_in(zone: &Zone, opening: &Opening) -> bool {
    zone.target == "ACCEPT"
        || zone
            .rich_rules
            .contains(&firewall_rules::rich_rule(opening))
}

fn takes(accept: &Accept, opening: &Opening) -> bool {
    let Packets {
        source,
        protocol,
        ports,
    } = &accept.packets;
    let (first, last) = opening.ports();
    source
        .as_ref()
        .is_none_or(|source| opening.is_within(source))
        && protocol
            .as_ref()
            .is_none_or(|name| name == opening.protocol().name())
        && ports.is_none_or(|(from, to)| from <= first && last <= to)
}

fn closed(plan: &mut Plan, world: &World<'_>, mode: Mode, via: &Via, opening: &Opening) {
    let remedy = firewall_rules::command(via, opening);
    if mode == Mode::Report {
        let message = format!(
            "{via} does not let in {opening}: NCCL's bootstrap on the host's network fails. Set fabric.firewall: Manage, or `{remedy}`"
        );
        return plan.find(FindingId::FirewallBlocks, COMPONENT, message);
    }
    if !via.is_plain() || is_iptables(via) {
        let message = format!(
            "{via} does not let in {opening}, and is kept by a tool that this agent does not drive: `{remedy}`"
        );
        return plan.find(FindingId::FirewallNotManaged, COMPONENT, message);
    }
    plan.ensure(
        world,
        change(via, opening, true),
        change(via, opening, false),
        format!("{via} does not let in {opening}"),
    );
}

/// iptables over nftables does not read back what others put into its chains. It has none of family inet.
fn is_iptables(via: &Via) -> bool {
    matches!(via, Via::Nft { family, table, chain } if family != "inet" && table == "filter" && chain == "INPUT")
}
