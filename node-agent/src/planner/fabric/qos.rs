//! Priorities of Ethernet ports: flow control, bandwidth, DSCP, congestion notification. Of physical functions only: a
//! virtual one's are those of its port.

use std::collections::BTreeSet;

use crds::fabric::{Roce, TrafficClass};
use host::facts::Sourced;
use host::facts::network::{Dcb, Ecn, Ets};
use topology::fact::Fact;

use super::roce::dscp;
use super::{Plan, Site, World, interface};
use crate::action::{EcnSide, FabricChange, Netdev};
use crate::findings::FindingId;

/// Priorities and traffic classes of a port.
const PRIORITIES: u8 = 8;

pub(super) fn plan(plan: &mut Plan, world: &World<'_>, site: &Site<'_>) {
    let fabric = &world.desired.config.fabric;
    let default = Roce::default();
    let roce = fabric.roce.as_ref().unwrap_or(&default);
    let asked = roce.pfc_priorities.is_some()
        || roce.dscp.is_some()
        || roce.traffic_class.is_some()
        || !fabric.traffic_classes.is_empty();
    if site.nic.physfn.is_some() || !(asked || roce.ecn_priorities.is_some()) {
        return;
    }
    for (netdev, _) in &site.netdevs {
        let Some(interface) = interface(world, netdev) else {
            continue;
        };
        if let (Some(dcb), true) = (&interface.dcb, asked)
            && decided_here(plan, netdev, dcb)
        {
            pfc(plan, world, netdev, roce, dcb);
            ets(plan, world, netdev, &fabric.traffic_classes, dcb);
            classify(plan, world, netdev, roce, dcb);
        }
        if let (Some(ecn), Some(wanted)) = (&interface.ecn, &roce.ecn_priorities) {
            congestion(plan, world, netdev, ecn, wanted);
        }
    }
}

/// Where the firmware speaks DCBX with the switch, the switch decides.
fn decided_here(plan: &mut Plan, netdev: &Netdev, dcb: &Dcb) -> bool {
    let flags = dcb.dcbx.fact.known();
    let managed = flags.is_some_and(|flags| flags.iter().any(|flag| flag == "lld_managed"));
    if managed {
        let message = format!(
            "the firmware of {netdev} takes priorities from the switch by DCBX: nothing of them is set. Switch that off (`dcb dcbx set dev {netdev} host`, or LLDP_NB_DCBX_P1=0 in the firmware), or set them on the switch"
        );
        plan.find(FindingId::ForeignOwner, &netdev.name, message);
    }
    !managed
}

/// A table of the port; one that is not there is a finding.
fn table<'a, T>(
    plan: &mut Plan,
    netdev: &Netdev,
    what: &str,
    found: &'a Sourced<T>,
) -> Option<&'a T> {
    match &found.fact {
        Fact::Known(table) => return Some(table),
        Fact::Absent => {
            let message = format!(
                "{what}: the driver of {netdev} has none ({}). Install DOCA-OFED, or take the field out",
                found.source
            );
            plan.find(FindingId::QosUnsupported, &netdev.name, message);
        }
        Fact::Unreadable(why) => {
            let message = format!("{what} of {netdev} is unknown and left as it is: {why}");
            plan.find(FindingId::HostUnreadable, &netdev.name, message);
        }
    }
    None
}

/// Priorities as a set; one that is none is a finding.
fn priorities(plan: &mut Plan, field: &str, given: &[u8]) -> Option<BTreeSet<u8>> {
    if let Some(wrong) = given.iter().find(|priority| **priority >= PRIORITIES) {
        let message = format!("{wrong} is no priority: write 0 to 7");
        plan.find(FindingId::InvalidSpec, field, message);
        return None;
    }
    Some(given.iter().copied().collect())
}

fn pfc(plan: &mut Plan, world: &World<'_>, netdev: &Netdev, roce: &Roce, dcb: &Dcb) {
    let Some(given) = &roce.pfc_priorities else {
        return;
    };
    let Some(wanted) = priorities(plan, "fabric.roce.pfcPriorities", given) else {
        return;
    };
    let Some(seen) = table(plan, netdev, "priority flow control", &dcb.pfc) else {
        return;
    };
    let seen: BTreeSet<u8> = seen.iter().copied().collect();
    let change = |priorities| FabricChange::Pfc {
        netdev: netdev.clone(),
        priorities,
    };
    if seen == wanted {
        return plan.as_asked(change(wanted));
    }
    let because = format!(
        "{netdev} pauses priorities {seen:?}; fabric.roce.pfcPriorities asks for {wanted:?}"
    );
    plan.fabric(world, change(wanted), change(seen), because);
}

fn ets(plan: &mut Plan, world: &World<'_>, netdev: &Netdev, classes: &[TrafficClass], dcb: &Dcb) {
    if classes.is_empty() {
        return;
    }
    let Some(wanted) = shares(classes) else {
        let message = "the shares make up less than 100 per cent and every priority has one: raise them to 100 together";
        return plan.find(FindingId::InvalidSpec, "fabric.trafficClasses", message);
    };
    let Some(seen) = table(plan, netdev, "bandwidth by class", &dcb.ets) else {
        return;
    };
    let change = |table| FabricChange::Ets {
        netdev: netdev.clone(),
        table,
    };
    if *seen == wanted {
        return plan.as_asked(change(wanted));
    }
    let because = format!(
        "{netdev} shares its bandwidth as {:?} per cent; fabric.trafficClasses asks for {:?}",
        seen.shares, wanted.shares
    );
    plan.fabric(world, change(wanted), change(seen.clone()), because);
}

/// Each priority that is named has a traffic class of its own number; all others share the lowest free one and what is
/// left of the bandwidth.
fn shares(classes: &[TrafficClass]) -> Option<Ets> {
    let size = usize::from(PRIORITIES);
    let mut table = Ets {
        priority_classes: vec![0; size],
        algorithms: vec!["strict".to_owned(); size],
        shares: vec![0; size],
    };
    let total: u8 = classes
        .iter()
        .map(|class| class.share)
        .fold(0, u8::saturating_add);
    let named = |priority: u8| classes.iter().find(|class| class.priority == priority);
    let rest = (0..PRIORITIES).find(|priority| named(*priority).is_none());
    let left = 100_u8.checked_sub(total)?;
    if rest.is_none() && left > 0 {
        return None;
    }
    for priority in 0..PRIORITIES {
        let place = usize::from(priority);
        let (class, share) = match named(priority) {
            Some(class) => (priority, Some(class.share)),
            None => (rest?, (rest == Some(priority)).then_some(left)),
        };
        table.priority_classes[place] = class;
        if let Some(share) = share {
            "ets".clone_into(&mut table.algorithms[place]);
            table.shares[place] = share;
        }
    }
    Some(table)
}

/// The DSCP of `RoCE` gets the priority that is lossless, and the port looks at the DSCP.
fn classify(plan: &mut Plan, world: &World<'_>, netdev: &Netdev, roce: &Roce, dcb: &Dcb) {
    if roce.dscp.is_none() && roce.traffic_class.is_none() {
        return;
    }
    let Some(dscp) = dscp(roce) else {
        let message = "fabric.roce.dscp is 0 to 63, and a trafficClass beside it is four times the DSCP (and two bits for ECN)";
        return plan.find(FindingId::InvalidSpec, "fabric.roce.dscp", message);
    };
    let wanted = priority(roce, dscp);
    if let Some(map) = table(plan, netdev, "DSCP map", &dcb.dscp) {
        map_entry(plan, world, netdev, (dscp, wanted), map.get(&dscp).copied());
    }
    let change = |dscp| FabricChange::Trust {
        netdev: netdev.clone(),
        dscp,
    };
    match dcb.trust.fact.known().map(String::as_str) {
        Some("dscp") => plan.as_asked(change(true)),
        Some(_) => {
            let because =
                format!("{netdev} takes priorities from the VLAN tag, which RoCE v2 need not have");
            plan.fabric(world, change(true), change(false), because);
        }
        None => {}
    }
}

fn map_entry(
    plan: &mut Plan,
    world: &World<'_>,
    netdev: &Netdev,
    (dscp, wanted): (u8, u8),
    before: Option<u8>,
) {
    let change = |priority| FabricChange::Dscp {
        netdev: netdev.clone(),
        dscp,
        priority,
    };
    if before == Some(wanted) {
        return plan.as_asked(change(before));
    }
    let because = match before {
        Some(priority) => format!("{netdev} gives DSCP {dscp} priority {priority}"),
        None => format!("{netdev} has no entry for DSCP {dscp}"),
    };
    plan.fabric(world, change(Some(wanted)), change(before), because);
}

/// The lossless priority where there is one; else the kernel's own rule, a DSCP's three upper bits.
fn priority(roce: &Roce, dscp: u8) -> u8 {
    let usual = dscp >> 3;
    match roce.pfc_priorities.as_deref() {
        None | Some([]) => usual,
        Some(lossless) if lossless.contains(&usual) => usual,
        Some(lossless) => lossless.iter().copied().min().unwrap_or(usual),
    }
}

fn congestion(plan: &mut Plan, world: &World<'_>, netdev: &Netdev, ecn: &Ecn, given: &[u8]) {
    let Some(wanted) = priorities(plan, "fabric.roce.ecnPriorities", given) else {
        return;
    };
    let sides = [
        (EcnSide::Reaction, &ecn.reaction),
        (EcnSide::Notification, &ecn.notification),
    ];
    for (side, found) in sides {
        if found.fact == Fact::Absent {
            let message = format!(
                "the driver of {netdev} has no {}: in-tree drivers do not, and whether ECN is on is not known. Set it in the firmware (ROCE_CC_PRIO_MASK_P1)",
                found.source
            );
            return plan.find(FindingId::QosUnsupported, &netdev.name, message);
        }
        let Some(seen) = table(plan, netdev, "congestion notification", found) else {
            continue;
        };
        for priority in 0..PRIORITIES {
            let change = |on| FabricChange::Ecn {
                netdev: netdev.clone(),
                side,
                priority,
                on,
            };
            let is_on = seen.contains(&priority);
            if is_on == wanted.contains(&priority) {
                if is_on {
                    plan.as_asked(change(true));
                }
                continue;
            }
            let because = format!(
                "fabric.roce.ecnPriorities asks for {wanted:?}; {netdev} has {seen:?} in {}",
                side.directory()
            );
            plan.fabric(world, change(!is_on), change(is_on), because);
        }
    }
}
