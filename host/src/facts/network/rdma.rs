//! Settings of RDMA ports: `RoCE` mode and type of service of RDMA-CM (`drivers/infiniband/core/cma_configfs.c`), the
//! out-of-tree driver's traffic class and congestion notification, forward error correction.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::Machine;

use super::ask::Question;
use crate::facts::Sourced;
use crate::machine::nics::{INFINIBAND, NET};
use crate::parse::{checked, parsed};
use crate::root::Root;

/// Directory in which RDMA-CM shows a device once someone has made its directory.
pub const CONFIGFS: &str = "/sys/kernel/config/rdma_cm";

/// Settings of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortSettings {
    /// `RoCE` mode of RDMA-CM; absent where nobody has made the device's directory.
    pub roce_mode: Sourced<String>,
    /// Type of service of RDMA-CM.
    pub tos: Sourced<u8>,
    /// Global traffic class of the out-of-tree driver: absent while none is set, and with the in-tree one.
    pub traffic_class: Sourced<u8>,
    /// Whether the driver has a global traffic class.
    pub has_traffic_class: bool,
    /// Whether RDMA-CM's configuration file system is there at all.
    pub configfs: bool,
}

/// Congestion notification by priority, of the out-of-tree driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ecn {
    /// Priorities on which the port reacts to notifications.
    pub reaction: Sourced<BTreeSet<u8>>,
    /// Priorities on which the port notifies.
    pub notification: Sourced<BTreeSet<u8>>,
}

/// Forward error correction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fec {
    /// What is configured.
    pub config: Vec<String>,
    /// What is in effect.
    pub active: Vec<String>,
}

pub(super) fn ports(
    root: &Root,
    machine: &Machine,
) -> BTreeMap<String, BTreeMap<u32, PortSettings>> {
    let devices = machine.nics.iter().filter_map(|nic| {
        let name = nic.rdma.clone()?;
        let ports = nic.ports.iter().map(|port| port.number);
        let ports = ports.map(|number| (number, port(root, &name, number)));
        Some((name.clone(), ports.collect()))
    });
    devices.collect()
}

/// Settings of one port. Nothing is created by looking: a directory that is not there stays so.
#[must_use]
pub fn port(root: &Root, device: &str, number: u32) -> PortSettings {
    let directory = format!("{CONFIGFS}/{device}/ports/{number}");
    let mode = format!("{directory}/default_roce_mode");
    let tos = format!("{directory}/default_roce_tos");
    let class = format!("{INFINIBAND}/{device}/tc/{number}/traffic_class");
    PortSettings {
        roce_mode: Sourced::new(mode.clone(), root.read(&mode)),
        tos: Sourced::new(
            tos.clone(),
            parsed(root, &tos, "type of service", |text| text.parse().ok()),
        ),
        has_traffic_class: root.resolve(&class).is_ok(),
        traffic_class: Sourced::new(class.clone(), traffic_class(root, &class)),
        configfs: root.resolve(CONFIGFS).is_ok(),
    }
}

/// `Global tclass=106`, or nothing while none is set.
fn traffic_class(root: &Root, path: &str) -> Fact<u8> {
    let text = match root.read(path) {
        Fact::Known(text) if text.is_empty() => Fact::Absent,
        text => text,
    };
    checked(text, path, "traffic class", |text| {
        text.lines().next()?.rsplit(['=', ' ']).next()?.parse().ok()
    })
}

/// Congestion notification of an interface.
#[must_use]
pub fn ecn(root: &Root, name: &str) -> Ecn {
    let side = |side: &str| {
        let directory = format!("{NET}/{name}/ecn/{side}/enable");
        Sourced::new(directory.clone(), enabled(root, &directory))
    };
    Ecn {
        reaction: side("roce_rp"),
        notification: side("roce_np"),
    }
}

/// One file for each priority. That the directory is not there says nothing of the NIC: in-tree drivers do not show it.
fn enabled(root: &Root, directory: &str) -> Fact<BTreeSet<u8>> {
    let names = match root.entries(directory) {
        Fact::Known(names) => names,
        Fact::Absent => return Fact::Absent,
        Fact::Unreadable(why) => return Fact::Unreadable(why),
    };
    let mut priorities = BTreeSet::new();
    for priority in names.iter().filter_map(|name| name.parse::<u8>().ok()) {
        match root.text(&format!("{directory}/{priority}")) {
            Ok(text) if text == "1" => drop(priorities.insert(priority)),
            Ok(_) => {}
            Err(error) => return Fact::Unreadable(error.chain()),
        }
    }
    Fact::Known(priorities)
}

pub(super) fn fec_question(name: &str) -> Question<'_> {
    Question {
        program: "ethtool",
        arguments: vec!["--json", "--show-fec", name],
        recorded: format!("ethtool-fec-{name}.json"),
    }
}

pub(super) fn fec(root: &Root, name: &str) -> Sourced<Fec> {
    let answer = fec_question(name).ask::<Vec<Fec>>(root);
    let first = answer.fact.map(|list| list.into_iter().next());
    Sourced::new(answer.source, crate::parse::flatten(first))
}
