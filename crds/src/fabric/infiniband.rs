//! InfiniBand settings. Omitted means Keep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// InfiniBand settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InfiniBand {
    /// Partitions to have a child interface for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pkey"]), transform = rules::partitions)]
    pub partitions: Vec<Partition>,
    /// IPoIB settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipoib: Option<Ipoib>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// The 15-bit `P_Key`, without the membership bit.
    pub pkey: u16,
    /// Full or limited member.
    pub membership: Membership,
}

/// Membership of a partition: bit 15 of the `P_Key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Membership {
    /// Talks to all.
    Full,
    /// Talks to full members only.
    Limited,
}

/// IPoIB settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = rules::ipoib)]
pub struct Ipoib {
    /// Datagram or connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<IpoibMode>,
    /// Interface MTU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub mtu: Option<u32>,
}

/// IPoIB mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IpoibMode {
    /// Unreliable datagram; MTU up to 4092.
    Datagram,
    /// Connected; MTU up to 65520.
    Connected,
}
