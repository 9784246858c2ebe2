//! Link type of the ports of compute NICs, in firmware: "written" (next) and "in effect" (the port's link layer) are two facts.
//! A card whose firmware has no such setting has one link type for good. Pure.

use std::collections::BTreeSet;

use crds::fabric::LinkLayer;
use host::facts::tuning::firmware::{Setting, Settings};
use topology::fact::Fact;
use topology::machine::{self, Machine, Nic, NicRole};
use topology::pci::PciAddress;

use super::super::{Plan, World};
use super::tuning;
use crate::action::{Change, Explain, LinkType, TuningChange};
use crate::findings::FindingId;

/// Plans the link type `link`; functions in `protected` are not touched.
pub(super) fn set(
    plan: &mut Plan,
    world: &World<'_>,
    link: LinkLayer,
    protected: &BTreeSet<PciAddress>,
) {
    let (wanted, layer) = match link {
        LinkLayer::InfiniBand => (LinkType::InfiniBand, machine::LinkLayer::InfiniBand),
        LinkLayer::Ethernet => (LinkType::Ethernet, machine::LinkLayer::Ethernet),
    };
    for nic in world
        .machine
        .nics
        .iter()
        .filter(|nic| nic.role == NicRole::Compute && nic.physfn.is_none())
    {
        let Some(function) = nic.pci else { continue };
        for (port, on_wire) in ports(nic, function) {
            match on_wire {
                Fact::Known(now) if *now == layer => {
                    plan.met.insert(change(function, port, wanted));
                }
                Fact::Unreadable(why) => plan.find(FindingId::HostUnreadable, nic.name(), why),
                Fact::Known(_) | Fact::Absent if protected.contains(&function) => {
                    let message = "its link type differs, and it carries the node's own traffic: it is not touched. Set LINK_TYPE by hand (mstconfig)";
                    plan.find(FindingId::ProtectedInterface, nic.name(), message);
                }
                Fact::Known(_) | Fact::Absent => port_of(
                    plan,
                    world,
                    nic,
                    Place {
                        function,
                        port,
                        wanted,
                    },
                ),
            }
        }
    }
}

/// Whether the port has the link type.
pub(super) fn in_effect(
    machine: &Machine,
    function: PciAddress,
    port: u8,
    link: LinkType,
) -> Fact<bool> {
    let wanted = match link {
        LinkType::InfiniBand => machine::LinkLayer::InfiniBand,
        LinkType::Ethernet => machine::LinkLayer::Ethernet,
    };
    let mut nics = machine.nics.iter();
    let nic = nics.find(|nic| nic.pci == Some(function));
    let of = |nic| ports(nic, function).into_iter().find(|one| one.0 == port);
    match nic.and_then(of) {
        Some((_, on_wire)) => on_wire.clone().map(|now| now == wanted),
        None => Fact::Absent,
    }
}

/// Ports of the card, by the number that its firmware gives them: a function with one port is that of its own number.
fn ports(nic: &Nic, function: PciAddress) -> Vec<(u8, &Fact<machine::LinkLayer>)> {
    match &nic.ports[..] {
        [only] => vec![(function.function.saturating_add(1), &only.link_layer)],
        several => several
            .iter()
            .filter_map(|port| Some((u8::try_from(port.number).ok()?, &port.link_layer)))
            .collect(),
    }
}

#[derive(Clone, Copy)]
struct Place {
    function: PciAddress,
    port: u8,
    wanted: LinkType,
}

fn port_of(plan: &mut Plan, world: &World<'_>, nic: &Nic, place: Place) {
    let Place {
        function,
        port,
        wanted,
    } = place;
    let change = change(function, port, wanted);
    if world.memory.attempts.had_reboot(&change) {
        return not_in_effect(plan, world, nic, change);
    }
    let settings = match tuning(world.state).firmware.get(&function) {
        Some(Fact::Known(settings)) => settings,
        Some(Fact::Unreadable(why)) => {
            return plan.find(FindingId::HostUnreadable, nic.name(), why);
        }
        Some(Fact::Absent) | None => {
            return plan.find(
                FindingId::HostUnreadable,
                nic.name(),
                "its firmware was not asked for LINK_TYPE",
            );
        }
    };
    let Some(next) = next(settings, port) else {
        let message = format!(
            "it is not {wanted:?}, and its firmware has no setting LINK_TYPE_P{port} of a known value: the card has one link type. Change fabric.linkLayer or the card"
        );
        return plan.find(FindingId::LinkTypeFixed, nic.name(), message);
    };
    if next == wanted {
        return not_in_effect(plan, world, nic, change);
    }
    let undo = self::change(function, port, next);
    let seen = format!(
        "{} has LINK_TYPE_P{port} {next:?} for the next boot",
        nic.name()
    );
    plan.ensure(world, change, undo, seen);
}

fn change(function: PciAddress, port: u8, link: LinkType) -> Change {
    Change::Tuning(TuningChange::LinkType {
        function,
        port,
        link,
    })
}

/// What is written stays planned until the port shows it, so that the reboot is granted and judged.
fn not_in_effect(plan: &mut Plan, world: &World<'_>, nic: &Nic, change: Change) {
    let wanted = change.desired();
    let message = if world.memory.attempts.had_reboot(&change) {
        format!(
            "{wanted} was written for the next boot, the host has rebooted, and the port is not {wanted}. Look at what `mstconfig query` says of it; some cards need a firmware reset or a power cycle"
        )
    } else {
        format!("it is {wanted} from the next boot on; it is not in effect yet. Reboot")
    };
    plan.find(FindingId::FirmwareNotInEffect, nic.name(), message);
    let seen = format!("{} is to be {wanted} and is not yet", nic.name());
    plan.act(change, seen, world.memory, world.now);
}

fn next(settings: &Settings, port: u8) -> Option<LinkType> {
    let setting = settings.get(&format!("LINK_TYPE_P{port}"))?;
    LinkType::of_number(Setting::number(&setting.next)?)
}
