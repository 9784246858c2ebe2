//! Which NIC has which role. Omitted means Keep.

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
