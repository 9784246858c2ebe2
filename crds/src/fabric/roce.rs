//! RoCE settings. Omitted means Keep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// RoCE settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = rules::roce)]
pub struct Roce {
    /// MTU of the network interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub netdev_mtu: Option<u32>,
    /// RoCE version of RDMA-CM connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<RoceVersion>,
    /// Global traffic class, 0 to 255.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_class: Option<u8>,
    /// DSCP, 0 to 63.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Priorities with priority flow control.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    pub pfc_priorities: Option<Vec<u8>>,
    /// Priorities with explicit congestion notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    pub ecn_priorities: Option<Vec<u8>>,
}

/// RoCE version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RoceVersion {
    /// RoCE v1: Ethertype 0x8915, not routable.
    V1,
    /// RoCE v2: UDP port 4791.
    V2,
}

/// A share of the bandwidth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rules::traffic_class)]
pub struct TrafficClass {
    /// Name.
    #[schemars(
        length(min = 1, max = 32),
        regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    )]
    pub name: String,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// Share of the bandwidth in per cent.
    pub share: u8,
}
