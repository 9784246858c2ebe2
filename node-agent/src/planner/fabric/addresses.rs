//! Addresses and masks of the rails, as the operator gave them to this node. Someone else's address stays. Which NIC is on which
//! rail is the operator's word alone, of which `fabric.rails` is a part already: node file and status go by it too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use host::facts::network::{Address, Link};
use ipnet::IpNet;
use topology::pci::PciAddress;

use super::{Plan, Site, World};
use crate::action::{Change, FabricChange, Netdev};
use crate::findings::FindingId;
use crate::roles;

pub(super) fn plan(plan: &mut Plan, world: &World<'_>, sites: &[Site<'_>]) {
    let config = &world.desired.config;
    // An entry that is none has its finding where the rails of the devices are read.
    let (rails, _) = roles::rails(&config.rails);
    let mut wanted: BTreeMap<String, BTreeSet<IpNet>> = BTreeMap::new();
    for (index, given) in config.addresses.iter().enumerate() {
        let Some(address) = parsed(plan, index, &given.address) else {
            continue;
        };
        let Some((site, netdev, link)) = interface(plan, (sites, &rails), given.rail, address)
        else {
            continue;
        };
        wanted
            .entry(netdev.name.clone())
            .or_default()
            .insert(address);
        place(plan, world, site, &netdev, link, address);
    }
    shared_subnets(plan, &wanted);
    for site in sites {
        if let Some((netdev, link)) = site.carrier()
            && let Some(addresses) = wanted.get(&netdev.name)
        {
            stale(plan, world, &netdev, link, addresses);
        }
    }
}

/// What the operator must not give to others: addresses in the ranges that it did not give to this node, and those that it
/// gave and that are in use elsewhere ([`place`] adds them). What this agent gave once and has not taken back counts too.
pub(super) fn in_use(plan: &mut Plan, world: &World<'_>, links: &BTreeMap<String, Link>) {
    let config = &world.desired.config;
    let ranges: Vec<IpNet> = config
        .fabric
        .addresses
        .iter()
        .filter_map(|range| range.cidr.parse().ok())
        .collect();
    let given: BTreeSet<IpAddr> = config
        .addresses
        .iter()
        .filter_map(|given| Some(given.address.parse::<IpNet>().ok()?.addr()))
        .collect();
    let found = links.values().flat_map(|link| &link.addresses);
    let foreign = found
        .filter(|one| !one.is_local())
        .map(|one| one.net.addr())
        .filter(|address| ranges.iter().any(|range| range.contains(address)))
        .filter(|address| !given.contains(address));
    plan.in_use.extend(foreign);
}

/// A host's address with its mask.
fn parsed(plan: &mut Plan, index: usize, text: &str) -> Option<IpNet> {
    let field = format!("addresses[{index}].address");
    let Ok(address) = text.parse::<IpNet>() else {
        let message =
            format!("`{text}` is no address with prefix length: write one such as 10.10.0.7/16");
        plan.find(FindingId::InvalidSpec, field, message);
        return None;
    };
    let spare = address.max_prefix_len() - address.prefix_len();
    let broadcast = address.addr().is_ipv4() && address.addr() == address.broadcast();
    if spare > 1 && (address.addr() == address.network() || broadcast) {
        let message = format!("{address} is the network's own address, not a host's");
        plan.find(FindingId::InvalidSpec, field, message);
        return None;
    }
    Some(address)
}

/// The interface of a rail.
fn interface<'s, 'a>(
    plan: &mut Plan,
    (sites, rails): (&'s [Site<'a>], &BTreeMap<PciAddress, u32>),
    rail: u32,
    address: IpNet,
) -> Option<(&'s Site<'a>, Netdev, &'a Link)> {
    let is_of = |site: &&Site<'_>| {
        let given = site.nic.pci.and_then(|pci| rails.get(&pci));
        given == Some(&rail)
    };
    let component = format!("rail {rail}");
    let mut on_rail = sites.iter().filter(is_of);
    let (first, second) = (on_rail.next(), on_rail.next());
    let why = match (first, second) {
        (None, _) => format!(
            "no NIC that is configured is on it, so nothing has {address}: correct fabric.rails, or the rule of `nics` that leaves the NIC out"
        ),
        (Some(a), Some(b)) if a.carrier().map(|c| c.0) != b.carrier().map(|c| c.0) => format!(
            "{} and {} are both on it, and {address} is for one; give each NIC a rail of its own",
            a.nic.name(),
            b.nic.name()
        ),
        (Some(site), _) => match site.carrier() {
            Some((netdev, link)) => return Some((site, netdev, link)),
            None => format!(
                "{} has no interface in the host's network namespace, so nothing has {address}: end the pod that has it, or load the driver",
                site.nic.name()
            ),
        },
    };
    plan.find(FindingId::AddressWithoutInterface, component, why);
    None
}

fn place(
    plan: &mut Plan,
    world: &World<'_>,
    site: &Site<'_>,
    netdev: &Netdev,
    link: &Link,
    address: IpNet,
) {
    let change = |present| FabricChange::Address {
        netdev: netdev.clone(),
        address,
        present,
    };
    if let Some(found) = link.addresses.iter().find(|one| one.net == address) {
        if !found.duplicate {
            plan.as_asked(change(true));
        }
        return duplicate(plan, netdev, found);
    }
    if let Some(why) = conflict(world, site, netdev, link, address) {
        let foreign = |(other, found): (Netdev, &Address)| !is_ours(world, &other, found.net);
        if elsewhere(site, netdev, address).any(foreign) {
            plan.in_use.insert(address.addr());
        }
        return plan.find(FindingId::AddressConflict, &netdev.name, why);
    }
    if !link.up {
        let change = |up| FabricChange::Up {
            netdev: netdev.clone(),
            up,
        };
        let seen = format!("{netdev} is to have {address} and is switched off");
        plan.fabric(world, change(true), change(false), seen);
    }
    let seen = format!("{netdev} does not have {address}");
    plan.fabric(world, change(true), change(false), seen);
}

fn duplicate(plan: &mut Plan, netdev: &Netdev, found: &Address) {
    if found.duplicate {
        plan.in_use.insert(found.net.addr());
        let message = format!(
            "another machine on the link of {netdev} has {} too: the kernel does not use it. Find that machine, or take the address out of the range",
            found.net
        );
        plan.find(FindingId::AddressConflict, &netdev.name, message);
    }
}

/// What stands in the way: the address elsewhere on this node, with another mask, or somebody's in the same subnet. What
/// this agent itself set before does not.
fn conflict(
    world: &World<'_>,
    site: &Site<'_>,
    netdev: &Netdev,
    link: &Link,
    address: IpNet,
) -> Option<String> {
    if let Some((Netdev { name, .. }, _)) = elsewhere(site, netdev, address).next() {
        return Some(format!(
            "{} is to be on {netdev} and is on {name}: it is left there. Take it away there, or out of the range",
            address.addr()
        ));
    }
    let others = link.addresses.iter().filter(|one| !one.is_local());
    let mut others = others.filter(|one| !is_ours(world, netdev, one.net));
    let near = others
        .find(|one| one.net.contains(&address.addr()) || address.contains(&one.net.addr()))?;
    Some(format!(
        "{netdev} has {} of someone else in the subnet of {address}: it is kept and ours is not added. Take that one away, or give the rail its range",
        near.net
    ))
}

/// The other interfaces of this node that have the address, whoever put it there.
fn elsewhere<'a>(
    site: &Site<'a>,
    netdev: &Netdev,
    address: IpNet,
) -> impl Iterator<Item = (Netdev, &'a Address)> {
    let others = site.links.iter().filter(|(name, _)| **name != netdev.name);
    others.filter_map(move |(name, link)| {
        let has = |one: &&Address| one.net.addr() == address.addr();
        let netdev = Netdev {
            name: name.clone(),
            index: link.index,
        };
        Some((netdev, link.addresses.iter().find(has)?))
    })
}

fn is_ours(world: &World<'_>, netdev: &Netdev, address: IpNet) -> bool {
    let ours = Change::Fabric(FabricChange::Address {
        netdev: netdev.clone(),
        address,
        present: true,
    });
    let mut changed = world.memory.journal.changed.values();
    changed.any(|entry| entry.done == ours && entry.boot_id == world.state.boot_id)
}

/// Interfaces of one node in one subnet: Linux answers ARP on any of them, and routes by the first.
fn shared_subnets(plan: &mut Plan, wanted: &BTreeMap<String, BTreeSet<IpNet>>) {
    let mut subnets: BTreeMap<IpNet, BTreeSet<&str>> = BTreeMap::new();
    for (name, addresses) in wanted {
        for address in addresses {
            subnets.entry(address.trunc()).or_default().insert(name);
        }
    }
    for (subnet, names) in subnets.into_iter().filter(|(_, names)| names.len() > 1) {
        let names: Vec<_> = names.into_iter().collect();
        let message = format!(
            "{} are all in {subnet}: Linux answers ARP for each on any of them and sends by one. Give each rail its own range, or set arp_ignore=1, arp_announce=2 and a routing rule for each",
            names.join(", ")
        );
        plan.find(FindingId::RailsShareSubnet, "addresses", message);
    }
}

/// Addresses that this agent gave and that are no longer asked for.
fn stale(
    plan: &mut Plan,
    world: &World<'_>,
    netdev: &Netdev,
    link: &Link,
    wanted: &BTreeSet<IpNet>,
) {
    for found in &link.addresses {
        if !wanted.contains(&found.net) && is_ours(world, netdev, found.net) {
            let change = |present| FabricChange::Address {
                netdev: netdev.clone(),
                address: found.net,
                present,
            };
            let seen = "this agent gave it, and the operator no longer does";
            plan.fabric(world, change(false), change(true), seen);
        }
    }
}
