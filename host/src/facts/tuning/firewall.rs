//! Who filters packets on the host, and what gets in.
//!
//! The host's firewall sees the TCP of NCCL's bootstrap, `rdma_cm` over software devices and soft-RoCE. It does not see RoCE of
//! hardware, whose packets the NIC takes itself. Nor does its input hook see what a pod with a network namespace of its own
//! receives.

mod nft;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::ToolAnswers;
use crate::root::Root;

pub use nft::{Accept, InputChain, Packets, parse as parse_ruleset};

/// Processes of the daemon, control group version 2 and version 1.
const FIREWALLD: &[&str] = &[
    "/sys/fs/cgroup/system.slice/firewalld.service/cgroup.procs",
    "/sys/fs/cgroup/systemd/system.slice/firewalld.service/cgroup.procs",
];
const FIREWALLD_CONF: &str = "/etc/firewalld/firewalld.conf";
const UFW_CONF: &str = "/etc/ufw/ufw.conf";
const UFW_RULES: &str = "/etc/ufw/user.rules";
/// Tables of the legacy iptables in the namespace of the first process.
const LEGACY: &str = "/proc/1/net/ip_tables_names";

/// Who filters, and what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Firewall {
    /// firewalld, where it runs.
    pub firewalld: Fact<Firewalld>,
    /// Rules of ufw, where it is enabled: `allow tcp 22 0.0.0.0/0 any 10.0.0.0/8 in`.
    pub ufw: Fact<Vec<String>>,
    /// Chains of nftables that see what the host receives.
    pub input_chains: Fact<Vec<InputChain>>,
    /// Tables of the legacy iptables, which nftables does not list.
    pub legacy_tables: Fact<Vec<String>>,
}

/// A running firewalld.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Firewalld {
    /// The zone of interfaces that are in no other.
    pub default_zone: String,
    /// What each zone says.
    pub zones: Fact<Vec<Zone>>,
}

/// A zone of firewalld.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    /// Its name.
    pub name: String,
    /// What happens to packets that no rule takes: `default`, `ACCEPT`, `DROP`, `%%REJECT%%`.
    pub target: String,
    /// Interfaces in it.
    pub interfaces: Vec<String>,
    /// Rich rules, as firewalld prints them.
    pub rich_rules: Vec<String>,
}

pub(crate) fn read(root: &Root, answers: &ToolAnswers) -> Firewall {
    Firewall {
        firewalld: firewalld(root, answers),
        ufw: ufw_rules(root),
        input_chains: match &answers.nft_ruleset {
            Fact::Known(text) => match nft::parse(text) {
                Ok(chains) => Fact::Known(chains),
                Err(error) => Fact::Unreadable(format!("read nft's ruleset: {error}")),
            },
            Fact::Absent => Fact::Absent,
            Fact::Unreadable(why) => Fact::Unreadable(why.clone()),
        },
        legacy_tables: root
            .read(LEGACY)
            .map(|text| text.lines().map(str::to_owned).collect()),
    }
}

fn firewalld(root: &Root, answers: &ToolAnswers) -> Fact<Firewalld> {
    let runs = |path: &&str| root.text(path).is_ok_and(|pids| !pids.is_empty());
    if !FIREWALLD.iter().any(runs) {
        return Fact::Absent;
    }
    let conf = root.text(FIREWALLD_CONF).unwrap_or_default();
    let zone = conf
        .lines()
        .find_map(|line| line.trim().strip_prefix("DefaultZone="));
    Fact::Known(Firewalld {
        default_zone: zone.unwrap_or("public").trim().to_owned(),
        zones: answers.firewalld_zones.clone().map(|text| zones(&text)),
    })
}

/// `firewall-cmd --list-all-zones`: a zone's name at the start of a line, its settings indented, rich rules one deeper.
#[must_use]
pub fn zones(text: &str) -> Vec<Zone> {
    let mut zones: Vec<Zone> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if !line.starts_with(char::is_whitespace) {
            zones.push(Zone {
                name: line
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
                ..Zone::default()
            });
        } else if let Some(zone) = zones.last_mut() {
            setting(zone, line.trim());
        }
    }
    zones.sort_by(|a, b| a.name.cmp(&b.name));
    zones
}

fn setting(zone: &mut Zone, line: &str) {
    if line.starts_with("rule ") {
        zone.rich_rules.push(line.to_owned());
    } else if let Some(target) = line.strip_prefix("target: ") {
        target.clone_into(&mut zone.target);
    } else if let Some(names) = line.strip_prefix("interfaces: ") {
        zone.interfaces = names.split_whitespace().map(str::to_owned).collect();
    }
}

/// The rules that its file lists, comments left out: `### tuple ### allow tcp 22 0.0.0.0/0 any 10.0.0.0/8 in comment=…`.
#[must_use]
pub fn ufw_rules(root: &Root) -> Fact<Vec<String>> {
    let enabled = |text: String| {
        text.lines()
            .any(|line| line.trim().eq_ignore_ascii_case("ENABLED=yes"))
    };
    match root.read(UFW_CONF).map(enabled) {
        Fact::Known(true) => {}
        Fact::Known(false) | Fact::Absent => return Fact::Absent,
        Fact::Unreadable(why) => return Fact::Unreadable(why),
    }
    let rules = root.read(UFW_RULES).map(|text| {
        let tuples = text
            .lines()
            .filter_map(|line| line.strip_prefix("### tuple ### "));
        let plain = |rule: &str| {
            rule.split(" comment=")
                .next()
                .unwrap_or(rule)
                .trim()
                .to_owned()
        };
        tuples.map(plain).collect()
    });
    match rules {
        Fact::Absent => Fact::Known(Vec::new()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
