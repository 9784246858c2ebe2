//! MTU of `RoCE` interfaces, and of what lies on them.

use host::facts::network::Link;

use super::{Plan, Site, World};
use crate::action::{FabricChange, Netdev};
use crate::findings::FindingId;

/// Bytes that a `RoCE` packet's headers take at most: `iboe_get_mtu` of `include/rdma/ib_addr.h`.
pub(crate) const HEADERS: u32 = 96;

pub(super) fn plan(plan: &mut Plan, world: &World<'_>, site: &Site<'_>) {
    let fabric = &world.desired.config.fabric;
    let Some((netdev, link)) = site.carrier() else {
        return;
    };
    let asked = fabric.roce.as_ref().and_then(|roce| roce.netdev_mtu);
    // An RDMA MTU alone needs room, and no exact size.
    let needed = fabric.rdma_mtu.map(|mtu| mtu + HEADERS);
    let (wanted, field) = match (asked, needed) {
        (Some(mtu), _) => (mtu, "fabric.roce.netdevMtu"),
        (None, Some(needed)) if link.mtu < needed => (needed, "fabric.rdmaMtu"),
        _ => return above(plan, site, &netdev, link.mtu),
    };
    set(plan, world, site, &(netdev.clone(), link), wanted, field);
    above(plan, site, &netdev, wanted);
}

/// Plans an MTU where the driver takes it and nobody else sets another.
pub(super) fn set(
    plan: &mut Plan,
    world: &World<'_>,
    site: &Site<'_>,
    (netdev, link): &(Netdev, &Link),
    wanted: u32,
    field: &str,
) {
    let change = |mtu| FabricChange::Mtu {
        netdev: netdev.clone(),
        mtu,
    };
    if link.mtu == wanted {
        return plan.as_asked(change(wanted));
    }
    let largest = site.netdevs.iter().filter_map(|(_, link)| link.max_mtu);
    let largest = largest.chain(link.max_mtu).min();
    let smallest = link.min_mtu.unwrap_or(0);
    if largest.is_some_and(|largest| wanted > largest) || wanted < smallest {
        let message = format!(
            "{field} asks for {wanted}; the driver of {netdev} takes {smallest} to {} bytes. Ask for what it takes",
            largest.map_or_else(|| "any".to_owned(), |largest| largest.to_string())
        );
        return plan.find(FindingId::MtuImpossible, &netdev.name, message);
    }
    let other = |mtu: Option<u32>| mtu.is_some_and(|mtu| mtu != wanted);
    let owners = site.owners(world);
    if let Some(owner) = owners.into_iter().find(|owner| other(owner.mtu)) {
        return plan.owned_elsewhere(&netdev.name, "the MTU", &wanted.to_string(), owner);
    }
    let seen = format!("{field} asks for {wanted}; {netdev} has {}", link.mtu);
    plan.fabric(world, change(wanted), change(link.mtu), seen);
}

/// What lies on the interface and is smaller has a smaller path MTU than the rail.
fn above(plan: &mut Plan, site: &Site<'_>, netdev: &Netdev, mtu: u32) {
    let lies_on = |link: &Link| link.lower.as_ref() == Some(&netdev.name);
    let smaller = site
        .links
        .iter()
        .filter(|(_, link)| lies_on(link) && link.mtu < mtu);
    for (name, link) in smaller {
        let message = format!(
            "{name} lies on {netdev} and has an MTU of {}, {netdev} {mtu}: RDMA over its addresses takes the smaller one. Set it where {name} is made",
            link.mtu
        );
        plan.find(FindingId::MtuPathDiffers, name, message);
    }
}
