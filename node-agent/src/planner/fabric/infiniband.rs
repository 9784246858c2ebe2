//! IPoIB mode and MTU, child interfaces of partitions. The subnet manager decides on the rest: what only it can change is
//! a finding. Nothing of Ethernet (VLAN, PFC, `RoCE`) is ever set on these ports.

use crds::fabric::{IpoibMode, Membership, Partition};
use host::facts::network::Link;
use topology::fact::Fact;

use super::{Plan, Site, World, mtu};
use crate::action::{Change, FabricChange, Netdev, Transport, child_name};
use crate::findings::FindingId;

/// Bytes of an IPoIB header: a datagram interface's MTU is that of its group less these.
const HEADER: u32 = 4;

/// Longest name of an interface.
const NAME_LIMIT: usize = 15;

/// The default partition: its interface is the parent.
const DEFAULT: u16 = 0x7fff;

pub(super) fn plan(plan: &mut Plan, world: &World<'_>, site: &Site<'_>) {
    let fabric = &world.desired.config.fabric;
    let first = site.netdevs.first();
    if let Some(found) = first {
        if let Some(ipoib) = ipoib(world) {
            let mode = mode(plan, world, site, found);
            if let (Some(wanted), Some(mode)) = (ipoib.mtu, mode) {
                interface_mtu(plan, world, site, found, (wanted, mode));
            }
        }
        if let Some(wanted) = fabric.rdma_mtu {
            path_mtu(plan, &found.0, found.1, wanted);
        }
    }
    let partitions = fabric.infiniband.iter().flat_map(|one| &one.partitions);
    let wanted: Vec<u16> = partitions
        .filter_map(|partition| self::partition(plan, world, site, first, partition))
        .collect();
    if let Some((netdev, _)) = first.filter(|_| !wanted.is_empty()) {
        stale(plan, world, site, netdev, &wanted);
    }
}

fn ipoib<'a>(world: &World<'a>) -> Option<&'a crds::fabric::Ipoib> {
    let infiniband = world.desired.config.fabric.infiniband.as_ref();
    infiniband.and_then(|infiniband| infiniband.ipoib.as_ref())
}

/// The mode that is asked for.
fn asked(world: &World<'_>) -> Option<Transport> {
    Some(match ipoib(world)?.mode? {
        IpoibMode::Datagram => Transport::Datagram,
        IpoibMode::Connected => Transport::Connected,
    })
}

/// The mode that the interface has or will have; `None` where that is not known.
fn mode(
    plan: &mut Plan,
    world: &World<'_>,
    site: &Site<'_>,
    (netdev, link): &(Netdev, &Link),
) -> Option<Transport> {
    let seen = link.ipoib.as_ref().and_then(|ipoib| ipoib.mode.as_deref());
    let before = match seen {
        Some("datagram") => Transport::Datagram,
        Some("connected") => Transport::Connected,
        _ => {
            let message = format!("the IPoIB mode of {netdev} is unknown: it is left as it is");
            plan.find(FindingId::HostUnreadable, &netdev.name, message);
            return None;
        }
    };
    let change = |mode| FabricChange::IpoibMode {
        netdev: netdev.clone(),
        mode,
    };
    let wanted = match asked(world) {
        None => return Some(before),
        Some(wanted) if wanted == before => {
            plan.as_asked(change(wanted));
            return Some(before);
        }
        Some(wanted) => wanted,
    };
    // Legacy IPoIB has one queue; enhanced IPoIB has many, and datagrams only.
    if wanted == Transport::Connected && link.transmit_queues.is_some_and(|queues| queues > 1) {
        let message = format!(
            "{netdev} runs in enhanced mode, which has datagrams only. Ask for Datagram, or load ib_ipoib with ipoib_enhanced=0"
        );
        plan.find(FindingId::IpoibEnhanced, &netdev.name, message);
        return Some(before);
    }
    let sets_other = |mode: &Option<String>| mode.as_deref().is_some_and(|m| m != wanted.as_str());
    let mut owners = site.owners(world).into_iter();
    if let Some(owner) = owners.find(|owner| sets_other(&owner.ipoib_mode)) {
        plan.owned_elsewhere(&netdev.name, "the IPoIB mode", wanted.as_str(), owner);
        return Some(before);
    }
    let seen = format!(
        "fabric.infiniband.ipoib.mode asks for {}; {netdev} is in {} mode",
        wanted.as_str(),
        before.as_str()
    );
    plan.fabric(world, change(wanted), change(before), seen);
    Some(wanted)
}

/// A datagram interface cannot be larger than its multicast group, which the subnet manager made.
fn interface_mtu(
    plan: &mut Plan,
    world: &World<'_>,
    site: &Site<'_>,
    found: &(Netdev, &Link),
    (wanted, mode): (u32, Transport),
) {
    let (netdev, link) = found;
    let datagram = mode == Transport::Datagram;
    if datagram && wanted > 4092 {
        let message = format!(
            "fabric.infiniband.ipoib.mtu asks for {wanted}; datagrams have 4092 bytes at most. Ask for that, or for mode Connected"
        );
        return plan.find(FindingId::MtuImpossible, &netdev.name, message);
    }
    if datagram && wanted > link.mtu && link.mtu == 2044 {
        let message = format!(
            "fabric.infiniband.ipoib.mtu asks for {wanted}; {netdev} has 2044, which is what a group of MTU 2048 leaves. Have the subnet manager make the partition with mtu=5 (4096)"
        );
        return plan.find(FindingId::IpoibGroupMtu, &netdev.name, message);
    }
    mtu::set(
        plan,
        world,
        site,
        found,
        wanted,
        "fabric.infiniband.ipoib.mtu",
    );
}

/// The port's MTU is the subnet manager's; IPoIB shows it.
fn path_mtu(plan: &mut Plan, netdev: &Netdev, link: &Link, wanted: u32) {
    let datagram = link.ipoib.as_ref().and_then(|ipoib| ipoib.mode.as_deref()) == Some("datagram");
    let group = link.mtu + HEADER;
    if datagram && group < wanted {
        let message = format!(
            "fabric.rdmaMtu asks for {wanted}; the group of {netdev} has {group}. On InfiniBand the subnet manager sets it (partitions.conf: mtu=5 is 4096)"
        );
        plan.find(FindingId::IpoibGroupMtu, &netdev.name, message);
    }
}

/// Plans the child of a partition; the `P_Key` that is wanted, whether or not it can be had.
fn partition(
    plan: &mut Plan,
    world: &World<'_>,
    site: &Site<'_>,
    first: Option<&(Netdev, &Link)>,
    wanted: &Partition,
) -> Option<u16> {
    let full = wanted.membership == Membership::Full;
    let pkey = wanted.pkey & DEFAULT | if full { 0x8000 } else { 0 };
    granted(plan, world, site, pkey)?;
    if wanted.pkey & DEFAULT == DEFAULT {
        return Some(pkey);
    }
    let Some((netdev, parent)) = first else {
        let message = format!(
            "no IPoIB interface is in the host's network namespace, so no child for P_Key {pkey:#06x}; load ib_ipoib"
        );
        plan.find(FindingId::PkeyWithoutInterface, site.nic.name(), message);
        return None;
    };
    let name = child_name(&netdev.name, pkey);
    let change = |present| FabricChange::Partition {
        netdev: netdev.clone(),
        pkey,
        present,
    };
    if let Some(child) = child(site, netdev, pkey) {
        plan.as_asked(change(true));
        differs(plan, &name, child, netdev, parent);
        return Some(pkey);
    }
    if name.len() > NAME_LIMIT {
        let message =
            format!("{name} is longer than {NAME_LIMIT} characters; give {netdev} a shorter name");
        plan.find(FindingId::PkeyWithoutInterface, &netdev.name, message);
        return None;
    }
    let seen = format!(
        "fabric.infiniband.partitions asks for P_Key {pkey:#06x}; {netdev} has no child with it"
    );
    plan.fabric(world, change(true), change(false), seen);
    Some(pkey)
}

/// The child of a `P_Key`, whatever its name and membership.
fn child<'a>(site: &Site<'a>, parent: &Netdev, pkey: u16) -> Option<&'a Link> {
    site.links.values().find(|link| {
        let key = link.ipoib.as_ref().and_then(|ipoib| ipoib.pkey);
        link.lower.as_ref() == Some(&parent.name)
            && key.is_some_and(|key| key & DEFAULT == pkey & DEFAULT)
    })
}

/// Whether the subnet manager has put the key into the tables of the NIC's ports.
fn granted(plan: &mut Plan, world: &World<'_>, site: &Site<'_>, pkey: u16) -> Option<()> {
    let device = world.state.facts.rdma.get(&site.nic.name());
    let tables: Vec<_> = device
        .into_iter()
        .flat_map(|device| device.ports.values())
        .map(|port| &port.pkeys)
        .collect();
    if let Some(Fact::Unreadable(why)) = tables.iter().find(|t| matches!(t, Fact::Unreadable(_))) {
        plan.find(FindingId::HostUnreadable, site.nic.name(), why);
        return None;
    }
    // A full member may do all that a limited one may.
    let has = |key: u16| key == pkey || key == pkey | 0x8000;
    let known = |table: &&Fact<_>| -> Option<bool> {
        let table: &std::collections::BTreeMap<u32, u16> = table.known()?;
        Some(table.values().any(|key| has(*key)))
    };
    if tables.iter().any(|table| known(table) == Some(true)) {
        return Some(());
    }
    let message = format!(
        "P_Key {pkey:#06x} is not in its port's table: the subnet manager has to make it a member of the partition (partitions.conf), then the child interface is made by itself"
    );
    plan.find(FindingId::PkeyNotGranted, site.nic.name(), message);
    None
}

/// A child that its parent's path does not fill.
fn differs(plan: &mut Plan, name: &str, child: &Link, parent: &Netdev, of_parent: &Link) {
    if child.mtu != of_parent.mtu {
        let message = format!(
            "the child {name} has an MTU of {}, its parent {parent} {}: its group was made with another MTU by the subnet manager (partitions.conf: mtu=5 is 4096)",
            child.mtu, of_parent.mtu
        );
        plan.find(FindingId::MtuPathDiffers, name, message);
    }
}

/// Children that this agent made and that are no longer asked for.
fn stale(plan: &mut Plan, world: &World<'_>, site: &Site<'_>, netdev: &Netdev, wanted: &[u16]) {
    for entry in world.memory.journal.changed.values() {
        let Change::Fabric(FabricChange::Partition {
            netdev: of,
            pkey,
            present: true,
        }) = &entry.done
        else {
            continue;
        };
        if of == netdev && !wanted.contains(pkey) && child(site, netdev, *pkey).is_some() {
            let change = |present| FabricChange::Partition {
                netdev: netdev.clone(),
                pkey: *pkey,
                present,
            };
            let seen = "this agent made it, and fabric.infiniband.partitions no longer has it";
            plan.fabric(world, change(false), change(true), seen);
        }
    }
}
