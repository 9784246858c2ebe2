//! Roles and rails of NICs, from the configuration. Pure; [`crate::decide`] calls it before pairing.

use std::collections::{BTreeMap, BTreeSet};

use crds::fabric::{LinkLayer, NicMatch, NicRole, NicRule, NicTraits};
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
    rule.min_rate.is_some()
        && !rates::is_known(nic)
        && with_traits(nic, |nic| rule.is_undecided(nic))
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

/// Whether everything that the rule names is so.
#[must_use]
pub fn matches(rule: &NicMatch, nic: &Nic) -> bool {
    with_traits(nic, |nic| rule.matches(nic))
}

fn with_traits<T>(nic: &Nic, look: impl FnOnce(&NicTraits<'_>) -> T) -> T {
    let pci = nic.pci.map(|pci| pci.to_string());
    look(&NicTraits {
        pci: pci.as_deref(),
        netdevs: &nic.netdevs,
        rdma: nic.rdma.as_deref(),
        link_layers: &link_layers(nic),
        rate: rate(nic),
    })
}

/// Link layers of the ports, as far as they are known.
#[must_use]
pub fn link_layers(nic: &Nic) -> Vec<LinkLayer> {
    let known = nic.ports.iter().filter_map(|port| port.link_layer.known());
    let mut layers: Vec<_> = known.copied().collect();
    layers.sort_unstable();
    layers.dedup();
    let layers = layers.into_iter().map(|layer| match layer {
        machine::LinkLayer::InfiniBand => LinkLayer::InfiniBand,
        machine::LinkLayer::Ethernet => LinkLayer::Ethernet,
    });
    layers.collect()
}

/// The highest rate of the ports in whole Gb/s.
#[must_use]
pub fn rate(nic: &Nic) -> Option<u32> {
    let rates = nic.ports.iter().filter_map(|port| port.rate_mbps.known());
    let highest = rates.max()?;
    Some(u32::try_from(highest / 1000).unwrap_or(u32::MAX))
}

fn role(role: NicRole) -> machine::NicRole {
    match role {
        NicRole::Compute => machine::NicRole::Compute,
        NicRole::Storage => machine::NicRole::Storage,
        NicRole::Management => machine::NicRole::Management,
        NicRole::Ignore => machine::NicRole::Ignore,
    }
}

/// The role as the API spells it.
#[must_use]
pub fn shown(role: machine::NicRole) -> NicRole {
    match role {
        machine::NicRole::Compute => NicRole::Compute,
        machine::NicRole::Storage => NicRole::Storage,
        machine::NicRole::Management => NicRole::Management,
        machine::NicRole::Ignore => NicRole::Ignore,
    }
}

#[cfg(test)]
mod tests;
