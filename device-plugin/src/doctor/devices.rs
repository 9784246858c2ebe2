//! Checks of single devices. Pure.

use std::collections::BTreeMap;

use host::machine::verbs::VerbsOwner;
use topology::node_file::{NodeDevice, NodeFile, NodeResource};

use super::facts::Facts;
use super::{Check, Verdict};
use crate::link::{self, Seen};
use crate::proto;
use crate::verbs::{self, Owned};

const NOT_ADMITTED: &str =
    "the reason is the agent's: the node's GpuRdmaNode says more and what to do about it";
const OTHERS: &str = "the agent sees such a change within seconds and writes a new node file: if it stays, look at the \
    agent's log";
const PORT_DOWN: &str = "look at the cable, the switch port and, on InfiniBand, the subnet manager";
const PORT_UNKNOWN: &str = "its state could not be read; the device counts as it did before. Look whether the RDMA device \
    is there, and whether /sys is mounted";
const HELD: &str = "it turns Healthy by itself after its link has been up for `stableUpSeconds`, or the agent has withdrawn \
    it: the plugin's log says which";

/// One check per resource, and one per device that has something against it.
pub(super) fn checks(file: &NodeFile, facts: &Facts) -> Vec<Check> {
    let served = served(facts);
    file.resources
        .iter()
        .flat_map(|resource| of_resource(resource, facts, &served))
        .collect()
}

/// Health by device id, over all sockets.
fn served(facts: &Facts) -> BTreeMap<&str, &str> {
    let sockets = facts
        .sockets
        .known()
        .into_iter()
        .flat_map(|sockets| sockets.values());
    let devices = sockets.filter_map(|served| served.as_ref().ok()).flatten();
    devices
        .map(|device| (device.id.as_str(), device.health.as_str()))
        .collect()
}

fn of_resource(
    resource: &NodeResource,
    facts: &Facts,
    served: &BTreeMap<&str, &str>,
) -> Vec<Check> {
    let bad: Vec<Check> = resource
        .devices
        .iter()
        .filter_map(|device| of_device(resource, device, facts, served))
        .collect();
    let (all, bad_count) = (resource.devices.len(), bad.len());
    let summary = Check::ok(
        &resource.name,
        format!(
            "{} of {all} devices have nothing against them",
            all - bad_count
        ),
    );
    std::iter::once(summary).chain(bad).collect()
}

fn of_device(
    resource: &NodeResource,
    device: &NodeDevice,
    facts: &Facts,
    served: &BTreeMap<&str, &str>,
) -> Option<Check> {
    let name = format!("{} {}", resource.name, device.id);
    if !device.admitted {
        return Some(Check::bad(
            &name,
            Verdict::Fail,
            format!("not admitted: {}", device.reason),
            NOT_ADMITTED,
        ));
    }
    if let Some(why) = others(device, facts) {
        return Some(Check::bad(&name, Verdict::Fail, why, OTHERS));
    }
    let seen = |wanted: Seen| {
        let nics = device
            .nics
            .iter()
            .filter(move |nic| link::nic(nic, &facts.ports) == wanted);
        nics.map(|nic| nic.rdma.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match link::device(device, &facts.ports) {
        Seen::Down => Some(down(&name, resource, &seen(Seen::Down))),
        _ if served.get(device.id.as_str()) == Some(&proto::UNHEALTHY) => Some(Check::bad(
            &name,
            Verdict::Fail,
            "served as Unhealthy",
            HELD,
        )),
        Seen::Unknown if !device.nics.is_empty() => {
            let detail = format!("port state unknown: {}", seen(Seen::Unknown));
            Some(Check::bad(&name, Verdict::Unknown, detail, PORT_UNKNOWN))
        }
        Seen::Unknown | Seen::Up => None,
    }
}

/// A uverbs device that the node file gives to a NIC and that is another's.
fn others(device: &NodeDevice, facts: &Facts) -> Option<String> {
    let owner = |number| facts.verbs.get(&number).cloned();
    let judged = |nic| verbs::judge(nic, |number| owner(number).unwrap_or(VerbsOwner::NOBODY));
    device.nics.iter().find_map(|nic| match judged(nic) {
        Owned::Others(why) => Some(why),
        Owned::Own | Owned::Unknown => None,
    })
}

fn down(name: &str, resource: &NodeResource, nics: &str) -> Check {
    let (verdict, effect) = if resource.unhealthy_on_nic_down {
        (
            Verdict::Fail,
            format!("Unhealthy once it lasted {} s", resource.hold_down_seconds),
        )
    } else {
        (Verdict::Warn, "the GPU is kept".to_owned())
    };
    Check::bad(
        name,
        verdict,
        format!("no active port: {nics} ({effect})"),
        PORT_DOWN,
    )
}
