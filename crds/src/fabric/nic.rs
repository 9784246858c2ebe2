//! Which NIC has which role, and which NIC a rule is about. Omitted means Keep. Pure; operator and agent match alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LinkLayer;
use crate::rules;

/// A rule that gives matching NICs a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NicRule {
    /// What must match, all of it.
    #[serde(rename = "match")]
    pub matches: NicMatch,
    /// The role.
    pub role: NicRole,
}

/// What identifies a NIC. Names may end in `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = rules::nic_match)]
pub struct NicMatch {
    /// PCI address, such as `0000:0c:00.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 17))]
    pub pci: Option<String>,
    /// Network interface name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub netdev: Option<String>,
    /// RDMA device name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub rdma: Option<String>,
    /// Link layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<LinkLayer>,
    /// Smallest rate in Gb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub min_rate: Option<u32>,
}

/// What a NIC is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NicRole {
    /// Carries GPU traffic; paired.
    #[default]
    Compute,
    /// Carries storage traffic.
    Storage,
    /// Carries the node's own addresses.
    Management,
    /// Not used.
    Ignore,
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicTraits<'a> {
    /// PCI address.
    pub pci: Option<&'a str>,
    /// Network interfaces.
    pub netdevs: &'a [String],
    /// RDMA device name.
    pub rdma: Option<&'a str>,
    /// Link layers of the ports that are known.
    pub link_layers: &'a [LinkLayer],
    /// Rate in whole Gb/s, where known.
    pub rate: Option<u32>,
}

impl NicMatch {
    /// Whether everything that the rule names is so. What is unknown matches nothing.
    #[must_use]
    pub fn matches(&self, nic: &NicTraits<'_>) -> bool {
        let layer = |wanted| nic.link_layers.contains(&wanted);
        self.names(nic)
            && self.link_layer.is_none_or(layer)
            && self
                .min_rate
                .is_none_or(|gbps| nic.rate.is_some_and(|rate| rate >= gbps))
    }

    /// Whether only what is unknown keeps the rule from matching.
    #[must_use]
    pub fn is_undecided(&self, nic: &NicTraits<'_>) -> bool {
        let known = Self {
            link_layer: self.link_layer.filter(|_| !nic.link_layers.is_empty()),
            min_rate: self.min_rate.filter(|_| nic.rate.is_some()),
            ..self.clone()
        };
        known != *self && known.matches(nic)
    }

    /// The part about names. Destructured without `..`: a new field cannot be forgotten.
    fn names(&self, nic: &NicTraits<'_>) -> bool {
        let Self {
            pci,
            netdev,
            rdma,
            link_layer: _,
            min_rate: _,
        } = self;
        is(pci.as_ref(), nic.pci.into_iter())
            && is(netdev.as_ref(), nic.netdevs.iter().map(String::as_str))
            && is(rdma.as_ref(), nic.rdma.into_iter())
    }
}

/// Whether a rule that names nothing, or one of these names, matches.
fn is<'a>(pattern: Option<&String>, mut names: impl Iterator<Item = &'a str>) -> bool {
    pattern.is_none_or(|pattern| names.any(|name| glob(pattern, name)))
}

/// Equality, or a common beginning where the pattern ends in `*`.
fn glob(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests;
