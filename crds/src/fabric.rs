//! Parts of the specification that describe NICs, fabric and host tuning. Omitted means Keep.

mod infiniband;
mod nic;
mod roce;
mod tuning;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use infiniband::{InfiniBand, Ipoib, IpoibMode, Membership, Partition};
pub use nic::{NicMatch, NicRole, NicRule, NicTraits};
pub use roce::{Roce, RoceVersion, TrafficClass};
pub use tuning::{Acs, RdmaNetns, Tuning};

use crate::rules;

/// What runs on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE.
    Ethernet,
}

/// InfiniBand or RoCE settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = rules::fabric)]
pub struct Fabric {
    /// Link type of the ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<LinkLayer>,
    /// Path MTU: 256, 512, 1024, 2048 or 4096.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 65_535))]
    pub rdma_mtu: Option<u32>,
    /// InfiniBand settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infiniband: Option<InfiniBand>,
    /// RoCE settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roce: Option<Roce>,
    /// Overrides of the operator's rail map.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub rails: Vec<RailRule>,
    /// Address ranges, one per rail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["rail"]), transform = rules::addresses)]
    pub addresses: Vec<RailAddresses>,
    /// What to do about the host's firewall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firewall: Option<Firewall>,
    /// Bandwidth by use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]), transform = rules::traffic_classes)]
    pub traffic_classes: Vec<TrafficClass>,
}

/// Gives matching NICs a rail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RailRule {
    /// What must match.
    #[serde(rename = "match")]
    pub matches: NicMatch,
    /// The rail.
    #[schemars(range(max = 63))]
    pub rail: u32,
}

/// An address range of a rail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rules::rail_addresses)]
pub struct RailAddresses {
    /// The rail.
    #[schemars(range(max = 63))]
    pub rail: u32,
    /// IPv4 or IPv6 range.
    #[schemars(length(min = 1, max = 64))]
    pub cidr: String,
}

/// What to do about the host's firewall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Firewall {
    /// Say what is blocked.
    Report,
    /// Open it through the manager that the host uses.
    Manage,
}
