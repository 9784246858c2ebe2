//! Whether a change of the fabric has its effect, by what the kernel shows. Reads only.

use std::collections::BTreeSet;
use std::fmt::Debug;

use host::facts::network::{self, Ecn, Link, links, port};
use host::root::Root;
use topology::fact::Fact;

use crate::action::{EcnSide, FabricChange, child_name, roce_mode};

/// The interface of a name.
pub(super) fn link(root: &Root, name: &str) -> Result<Link, String> {
    let found = known(links(root).fact, "interfaces")?;
    found
        .get(name)
        .cloned()
        .ok_or_else(|| format!("there is no interface {name}"))
}

fn known<T>(fact: Fact<T>, what: &str) -> Result<T, String> {
    match fact {
        Fact::Known(value) => Ok(value),
        Fact::Absent => Err(format!("the kernel shows no {what}")),
        Fact::Unreadable(why) => Err(why),
    }
}

fn same<T: PartialEq + Debug>(what: &str, seen: &T, wanted: &T) -> Result<(), String> {
    if seen == wanted {
        return Ok(());
    }
    Err(format!("{what} is {seen:?}"))
}

pub(super) fn verify(root: &Root, change: &FabricChange) -> Result<(), String> {
    match change {
        FabricChange::Mtu { netdev, mtu } => same("the MTU", &link(root, &netdev.name)?.mtu, mtu),
        FabricChange::Up { netdev, up } => same("it being up", &link(root, &netdev.name)?.up, up),
        FabricChange::Address {
            netdev,
            address,
            present,
        } => {
            let link = link(root, &netdev.name)?;
            let has = link.addresses.iter().any(|one| one.net == *address);
            same("it being there", &has, present)
        }
        FabricChange::IpoibMode { netdev, mode } => {
            let mode_seen = link(root, &netdev.name)?.ipoib.and_then(|ipoib| ipoib.mode);
            same("the mode", &mode_seen.as_deref(), &Some(mode.as_str()))
        }
        FabricChange::Partition {
            netdev,
            pkey,
            present,
        } => {
            let links = known(links(root).fact, "interfaces")?;
            let there = links.contains_key(&child_name(&netdev.name, *pkey));
            same("it being there", &there, present)
        }
        _ => verify_quality(root, change),
    }
}

/// What belongs to the quality of service.
fn verify_quality(root: &Root, change: &FabricChange) -> Result<(), String> {
    let name = &change.netdev().name;
    let dcb = || network::dcb(root, name);
    match change {
        FabricChange::Pfc { priorities, .. } => {
            let seen: BTreeSet<u8> = known(dcb().pfc.fact, "PFC")?.into_iter().collect();
            same("PFC", &seen, priorities)
        }
        FabricChange::Ets { table, .. } => same("ETS", &known(dcb().ets.fact, "ETS")?, table),
        FabricChange::Dscp { dscp, priority, .. } => {
            let map = known(dcb().dscp.fact, "DSCP map")?;
            same("the priority", &map.get(dscp), &priority.as_ref())
        }
        FabricChange::Trust { dscp, .. } => {
            let trust = known(dcb().trust.fact, "trust")?;
            same("it being trusted", &(trust == "dscp"), dscp)
        }
        FabricChange::Ecn {
            side, priority, on, ..
        } => {
            let Ecn {
                reaction,
                notification,
            } = network::ecn(root, name);
            let table = match side {
                EcnSide::Reaction => reaction,
                EcnSide::Notification => notification,
            };
            let enabled = known(table.fact, "congestion notification")?;
            same("it being on", &enabled.contains(priority), on)
        }
        FabricChange::RoceMode { port: of, v2 } => {
            let mode = known(port(root, &of.device, of.port).roce_mode.fact, "RoCE mode")?;
            same("the mode", &mode.as_str(), &roce_mode(*v2))
        }
        FabricChange::Tos { port: of, tos } => {
            let seen = known(port(root, &of.device, of.port).tos.fact, "type of service")?;
            same("it", &seen, tos)
        }
        FabricChange::TrafficClass { port: of, class } => {
            let seen = port(root, &of.device, of.port).traffic_class.fact;
            same("it", &known(seen, "traffic class")?, class)
        }
        // Handled by the caller.
        _ => Ok(()),
    }
}
