//! The command of each change that is a tool's: program and typed arguments. Pure.

use std::collections::BTreeSet;

use host::facts::network::Ets;

use crate::action::{FabricChange, child_name};

/// Program and arguments.
pub(super) type Command = (&'static str, Vec<String>);

/// Program and arguments; `None` where a file is written instead.
pub(super) fn command(change: &FabricChange) -> Option<Command> {
    let ip = |words: &[&str]| Some(("ip", owned(words)));
    match change {
        FabricChange::Mtu { netdev, mtu } => {
            ip(&["link", "set", "dev", &netdev.name, "mtu", &mtu.to_string()])
        }
        FabricChange::Up { netdev, up } => {
            let state = if *up { "up" } else { "down" };
            ip(&["link", "set", "dev", &netdev.name, state])
        }
        FabricChange::Address {
            netdev,
            address,
            present,
        } => {
            let verb = if *present { "add" } else { "delete" };
            ip(&["address", verb, &address.to_string(), "dev", &netdev.name])
        }
        FabricChange::IpoibMode { netdev, mode } => ip(&[
            "link",
            "set",
            "dev",
            &netdev.name,
            "type",
            "ipoib",
            "mode",
            mode.as_str(),
        ]),
        FabricChange::Partition {
            netdev,
            pkey,
            present,
        } => {
            let child = child_name(&netdev.name, *pkey);
            let key = format!("{pkey:#06x}");
            if !present {
                return ip(&["link", "delete", "dev", &child]);
            }
            ip(&[
                "link",
                "add",
                "link",
                &netdev.name,
                "name",
                &child,
                "type",
                "ipoib",
                "pkey",
                &key,
            ])
        }
        _ => dcb(change).map(|arguments| ("dcb", arguments)),
    }
}

fn dcb(change: &FabricChange) -> Option<Vec<String>> {
    match change {
        FabricChange::Pfc { netdev, priorities } => Some(pfc(&netdev.name, priorities)),
        FabricChange::Ets { netdev, table } => Some(ets(&netdev.name, table)),
        FabricChange::Dscp {
            netdev,
            dscp,
            priority: Some(priority),
        } => Some(dscp_entry("replace", &netdev.name, *dscp, *priority)),
        _ => None,
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Every priority by name: what is not named keeps its value.
fn pfc(netdev: &str, priorities: &BTreeSet<u8>) -> Vec<String> {
    let mut words = owned(&["pfc", "set", "dev", netdev, "prio-pfc"]);
    let state = |priority| {
        if priorities.contains(&priority) {
            "on"
        } else {
            "off"
        }
    };
    words.extend((0..8).map(|priority| format!("{priority}:{}", state(priority))));
    words
}

fn ets(netdev: &str, table: &Ets) -> Vec<String> {
    let mut words = owned(&["ets", "set", "dev", netdev]);
    let mut map = |name: &str, values: &[String]| {
        words.push(name.to_owned());
        let entries = values.iter().enumerate();
        words.extend(entries.map(|(index, value)| format!("{index}:{value}")));
    };
    let numbers = |values: &[u8]| values.iter().map(u8::to_string).collect::<Vec<_>>();
    map("tc-tsa", &table.algorithms);
    map("tc-bw", &numbers(&table.shares));
    map("prio-tc", &numbers(&table.priority_classes));
    words
}

/// The command that takes one entry of the DSCP map away.
pub(super) fn without_dscp(netdev: &str, dscp: u8, priority: u8) -> Command {
    ("dcb", dscp_entry("del", netdev, dscp, priority))
}

/// Entries of other DSCPs stay.
fn dscp_entry(verb: &str, netdev: &str, dscp: u8, priority: u8) -> Vec<String> {
    let entry = format!("{dscp}:{priority}");
    owned(&["app", verb, "dev", netdev, "dscp-prio", &entry])
}

#[cfg(test)]
mod tests;
