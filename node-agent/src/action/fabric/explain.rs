//! What each change of the fabric says of itself. Pure.

use std::collections::BTreeSet;

use crds::node::Cost;
use host::facts::network::Ets;

use super::{FabricChange, child_name, roce_mode};
use crate::action::{Explain, Lasts};

impl Explain for FabricChange {
    fn kind(&self) -> &'static str {
        match self {
            Self::Mtu { .. } => "SetMtu",
            Self::Up { .. } => "SetUp",
            Self::Address { .. } => "SetAddress",
            Self::IpoibMode { .. } => "SetIpoibMode",
            Self::Partition { .. } => "SetPartition",
            Self::Pfc { .. } => "SetPfc",
            Self::Ets { .. } => "SetEts",
            Self::Dscp { .. } => "SetDscp",
            Self::Trust { .. } => "SetTrust",
            Self::Ecn { .. } => "SetEcn",
            Self::RoceMode { .. } => "SetRoceMode",
            Self::Tos { .. } => "SetRoceTos",
            Self::TrafficClass { .. } => "SetTrafficClass",
        }
    }

    fn target(&self) -> String {
        match self {
            Self::Address {
                netdev, address, ..
            } => format!("{netdev} {address}"),
            Self::Partition { netdev, pkey, .. } => child_name(&netdev.name, *pkey),
            Self::Dscp { netdev, dscp, .. } => format!("{netdev} DSCP {dscp}"),
            Self::Ecn {
                netdev,
                side,
                priority,
                ..
            } => format!("{netdev} {} priority {priority}", side.directory()),
            Self::RoceMode { port, .. }
            | Self::Tos { port, .. }
            | Self::TrafficClass { port, .. } => port.to_string(),
            _ => self.netdev().name.clone(),
        }
    }

    fn desired(&self) -> String {
        match self {
            Self::Mtu { mtu, .. } => mtu.to_string(),
            Self::Up { up, .. } => word(*up, "up", "down"),
            Self::Address { present, .. } | Self::Partition { present, .. } => {
                word(*present, "present", "absent")
            }
            Self::IpoibMode { mode, .. } => mode.as_str().to_owned(),
            Self::Pfc { priorities, .. } => listed(priorities),
            Self::Ets { table, .. } => shares(table),
            Self::Dscp { priority, .. } => {
                priority.map_or_else(|| "(not set)".to_owned(), |p| format!("priority {p}"))
            }
            Self::Trust { dscp, .. } => word(*dscp, "dscp", "pcp"),
            Self::Ecn { on, .. } => word(*on, "on", "off"),
            Self::RoceMode { v2, .. } => roce_mode(*v2).to_owned(),
            Self::Tos { tos, .. } => tos.to_string(),
            Self::TrafficClass { class, .. } => class.to_string(),
        }
    }

    /// What resets a port or its queues breaks the connections over it; what later connections take breaks none.
    fn cost(&self) -> Cost {
        match self {
            Self::Up { up: true, .. }
            | Self::Address { present: true, .. }
            | Self::Partition { present: true, .. }
            | Self::Ecn { .. }
            | Self::RoceMode { .. }
            | Self::Tos { .. }
            | Self::TrafficClass { .. } => Cost::None,
            Self::Mtu { .. }
            | Self::Up { .. }
            | Self::Address { .. }
            | Self::IpoibMode { .. }
            | Self::Partition { .. }
            | Self::Pfc { .. }
            | Self::Ets { .. }
            | Self::Dscp { .. }
            | Self::Trust { .. } => Cost::Traffic,
        }
    }

    fn lasts(&self) -> Lasts {
        Lasts::Boot
    }

    fn effect(&self) -> String {
        let until = "until the driver is loaded again";
        match self {
            Self::Mtu { netdev, mtu } => {
                format!(
                    "{netdev} carries packets of {mtu} bytes, {until}; its queues are set up anew"
                )
            }
            Self::Up { netdev, up } => format!("{netdev} is switched {}", word(*up, "on", "off")),
            Self::Address {
                netdev,
                address,
                present,
            } => format!(
                "{netdev} {} {address}, {until}; other addresses stay",
                word(*present, "has", "loses")
            ),
            Self::IpoibMode { netdev, mode } => format!(
                "{netdev} runs in {} mode, {until}; its connections end",
                mode.as_str()
            ),
            Self::Partition {
                netdev,
                pkey,
                present,
            } => format!(
                "the child of {netdev} for P_Key {pkey:#06x} is {}",
                word(*present, "made", "taken away")
            ),
            _ => self.quality(until),
        }
    }

    fn verification(&self) -> String {
        match self {
            Self::Mtu { netdev, .. }
            | Self::Up { netdev, .. }
            | Self::Address { netdev, .. }
            | Self::IpoibMode { netdev, .. } => {
                format!("`ip -j -d address show` shows it of {netdev}")
            }
            Self::Partition { netdev, .. } => {
                format!("`ip -j -d address show` shows the child of {netdev} with this P_Key")
            }
            Self::Pfc { netdev, .. } => format!("`dcb -j pfc show dev {netdev}`"),
            Self::Ets { netdev, .. } => format!("`dcb -j ets show dev {netdev}`"),
            Self::Dscp { netdev, .. } => format!("`dcb -j app show dev {netdev}`"),
            Self::Trust { netdev, .. } => format!("/sys/class/net/{netdev}/qos/trust"),
            Self::Ecn {
                netdev,
                side,
                priority,
                ..
            } => format!(
                "/sys/class/net/{netdev}/ecn/{}/enable/{priority}",
                side.directory()
            ),
            Self::RoceMode { port, .. } => {
                format!("default_roce_mode of {port} below /sys/kernel/config/rdma_cm")
            }
            Self::Tos { port, .. } => {
                format!("default_roce_tos of {port} below /sys/kernel/config/rdma_cm")
            }
            Self::TrafficClass { port, .. } => format!(
                "/sys/class/infiniband/{}/tc/{}/traffic_class",
                port.device, port.port
            ),
        }
    }
}

impl FabricChange {
    /// The effect of what belongs to the quality of service.
    fn quality(&self, until: &str) -> String {
        match self {
            Self::Pfc { netdev, priorities } => format!(
                "{netdev} pauses priority {}, and no other, {until}; the link may bounce",
                listed(priorities)
            ),
            Self::Ets { netdev, table } => {
                format!(
                    "{netdev} shares its bandwidth by traffic class: {}, {until}",
                    shares(table)
                )
            }
            Self::Dscp {
                netdev,
                dscp,
                priority: Some(priority),
            } => format!(
                "{netdev} trusts DSCP; packets with DSCP {dscp} have priority {priority}, {until}"
            ),
            Self::Dscp { netdev, dscp, .. } => format!("{netdev} has no entry for DSCP {dscp}"),
            Self::Trust { netdev, dscp } => format!(
                "{netdev} takes priorities from the {}, {until}",
                word(*dscp, "DSCP", "VLAN tag")
            ),
            Self::Ecn {
                netdev,
                side,
                priority,
                on,
            } => format!(
                "{netdev}: {} of priority {priority} is {}, {until}",
                side.directory(),
                word(*on, "on", "off")
            ),
            Self::RoceMode { port, v2 } => {
                format!(
                    "later RDMA-CM connections of {port} use {}, {until}",
                    roce_mode(*v2)
                )
            }
            Self::Tos { port, tos } => {
                format!("later RDMA-CM connections of {port} have type of service {tos}, {until}")
            }
            Self::TrafficClass { port, class } => {
                format!("later connections of {port} have traffic class {class}, {until}")
            }
            _ => String::new(),
        }
    }
}

fn word(is: bool, yes: &str, no: &str) -> String {
    if is { yes } else { no }.to_owned()
}

fn listed(priorities: &BTreeSet<u8>) -> String {
    if priorities.is_empty() {
        return "none".to_owned();
    }
    let numbers: Vec<_> = priorities.iter().map(u8::to_string).collect();
    numbers.join(",")
}

/// `0:50% 3:50%`, and what runs in strict order.
fn shares(table: &Ets) -> String {
    let classes = table.algorithms.iter().zip(&table.shares).enumerate();
    let shown = classes.filter_map(|(class, (algorithm, share))| match algorithm.as_str() {
        "ets" => Some(format!("{class}:{share}%")),
        "strict" => None,
        other => Some(format!("{class}:{other}")),
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() {
        return "all strict".to_owned();
    }
    shown.join(" ")
}
