//! Roles and rails of NICs, from the configuration. Pure; [`crate::decide`] calls it before pairing.

use std::collections::{BTreeMap, BTreeSet};

use crds::fabric::{LinkLayer, NicMatch, NicRole, NicRule};
use crds::node::{Finding, NicRail};
use topology::machine::{self, Machine, Nic};
use topology::partition::{Partition, nic_key};
use topology::pci::PciAddress;
use topology::policy::ResourceKind;

use crate::findings::FindingId;
use crate::rates;

/// Key of a NIC → its role in the partition that holds.
pub type KeptRoles = BTreeMap<String, machine::NicRole>;

/// The roles that NICs have in a partition. One that is shared never goes into a pair.
#[must_use]
pub fn kept(partition: Option<&Partition>) -> KeptRoles {
    let mut roles = KeptRoles::new();
    for resource in partition.into_iter().flat_map(|p| &p.resources) {
        let role = match resource.kind {
            ResourceKind::Pair | ResourceKind::Gpu => machine::NicRole::Compute,
            ResourceKind::SharedNic => machine::NicRole::Storage,
        };
        let nics = resource.devices.iter().flat_map(|device| &device.nics);
        roles.extend(nics.map(|nic| (nic.key.clone(), role)));
    }
    roles
}

/// Gives each NIC the role of the first rule that matches; of the others those in `own` are Management, and the rest keep what
/// discovery gave them. Where only its rate would
/// tell whether a rule matches, and that was never seen, a NIC keeps the role that it has in the partition.
pub fn assign(machine: &mut Machine, rules: &[NicRule], kept: &KeptRoles, own: &BTreeSet<String>) {
    let keys: Vec<String> = machine
        .nics
        .iter()
        .map(|nic| nic_key(machine, nic))
        .collect();
    for (nic, key) in machine.nics.iter_mut().zip(keys) {
        let before = kept.get(&key).copied();
        let decides = |rule: &NicRule| {
            if matches(&rule.matches, nic) {
                return Some(role(rule.role));
            }
            before.filter(|_| is_undecided(&rule.matches, nic))
        };
        if let Some(decided) = rules.iter().find_map(decides) {
            nic.role = decided;
        } else if own.contains(&key) {
            nic.role = machine::NicRole::Management;
        }
    }
}

/// Whether all but an unknown rate matches.
fn is_undecided(rule: &NicMatch, nic: &Nic) -> bool {
    let without = NicMatch {
        min_rate: None,
        ..rule.clone()
    };
    rule.min_rate.is_some() && !rates::is_known(nic) && matches(&without, nic)
}

/// Rail of each NIC by PCI address; an address that is none is a finding.
#[must_use]
pub fn rails(rails: &[NicRail]) -> (BTreeMap<PciAddress, u32>, Vec<Finding>) {
    let mut map = BTreeMap::new();
    let mut findings = Vec::new();
    for (index, NicRail { pci, rail }) in rails.iter().enumerate() {
        match pci.parse::<PciAddress>() {
            Ok(address) => drop(map.insert(address, *rail)),
            Err(error) => {
                let field = format!("rails[{index}].pci");
                findings.push(FindingId::InvalidSpec.about(field, error.to_string()));
            }
        }
    }
    (map, findings)
}

/// Whether everything that the rule names is so. Destructured without `..`: a new field cannot be forgotten.
#[must_use]
pub fn matches(rule: &NicMatch, nic: &Nic) -> bool {
    let NicMatch {
        pci,
        netdev,
        rdma,
        link_layer,
        min_rate,
    } = rule;
    let named = |pattern: &Option<String>, names: &[String]| {
        pattern
            .as_ref()
            .is_none_or(|pattern| names.iter().any(|name| glob(pattern, name)))
    };
    let pcis: Vec<String> = nic.pci.iter().map(ToString::to_string).collect();
    named(pci, &pcis)
        && named(netdev, &nic.netdevs)
        && named(rdma, &nic.rdma.clone().into_iter().collect::<Vec<_>>())
        && link_layer.is_none_or(|wanted| has_layer(nic, wanted))
        && min_rate.is_none_or(|gbps| has_rate(nic, gbps))
}

/// Equality, or a common beginning where the pattern ends in `*`.
fn glob(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// A port whose link layer is unknown matches nothing.
fn has_layer(nic: &Nic, wanted: LinkLayer) -> bool {
    let wanted = match wanted {
        LinkLayer::InfiniBand => machine::LinkLayer::InfiniBand,
        LinkLayer::Ethernet => machine::LinkLayer::Ethernet,
    };
    nic.ports
        .iter()
        .any(|port| port.link_layer.known() == Some(&wanted))
}

fn has_rate(nic: &Nic, gbps: u32) -> bool {
    let mbps = u64::from(gbps) * 1000;
    nic.ports
        .iter()
        .any(|port| port.rate_mbps.known().is_some_and(|rate| *rate >= mbps))
}

fn role(role: NicRole) -> machine::NicRole {
    match role {
        NicRole::Compute => machine::NicRole::Compute,
        NicRole::Storage => machine::NicRole::Storage,
        NicRole::Management => machine::NicRole::Management,
        NicRole::Ignore => machine::NicRole::Ignore,
    }
}

#[cfg(test)]
mod tests;
