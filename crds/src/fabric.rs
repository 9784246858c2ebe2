//! Parts of the specification that describe NICs, fabric and host tuning. Omitted means Keep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
pub struct NicMatch {
    /// PCI address, such as `0000:0c:00.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci: Option<String>,
    /// Network interface name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netdev: Option<String>,
    /// RDMA device name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma: Option<String>,
    /// Link layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<LinkLayer>,
    /// Smallest rate in Gb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
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
pub struct Fabric {
    /// Link type of the ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<LinkLayer>,
    /// Path MTU: 256, 512, 1024, 2048 or 4096.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_mtu: Option<u32>,
    /// InfiniBand settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infiniband: Option<InfiniBand>,
    /// RoCE settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roce: Option<Roce>,
    /// Overrides of the operator's rail map.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<RailRule>,
    /// Address ranges, one per rail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<RailAddresses>,
    /// What to do about the host's firewall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firewall: Option<Firewall>,
    /// Bandwidth by use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic_classes: Vec<TrafficClass>,
}

/// InfiniBand settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InfiniBand {
    /// Partitions to have a child interface for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Partition>,
    /// IPoIB settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipoib: Option<Ipoib>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// The 15-bit P_Key, without the membership bit.
    pub pkey: u16,
    /// Full or limited member.
    pub membership: Membership,
}

/// Membership of a partition: bit 15 of the P_Key.
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
pub struct Ipoib {
    /// Datagram or connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<IpoibMode>,
    /// Interface MTU.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// RoCE settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Roce {
    /// MTU of the network interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    pub pfc_priorities: Option<Vec<u8>>,
    /// Priorities with explicit congestion notification.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// Gives matching NICs a rail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RailRule {
    /// What must match.
    #[serde(rename = "match")]
    pub matches: NicMatch,
    /// The rail.
    pub rail: u32,
}

/// An address range of a rail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RailAddresses {
    /// The rail.
    pub rail: u32,
    /// IPv4 or IPv6 range.
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

/// A share of the bandwidth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficClass {
    /// Name.
    pub name: String,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// Share of the bandwidth in per cent.
    pub share: u8,
}

/// PCIe and RDMA settings of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tuning {
    /// PCIe access control services between GPU and NIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acs: Option<Acs>,
    /// PCIe maximum read request of the NICs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_read_request_bytes: Option<u32>,
    /// Network namespace mode of RDMA devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_netns: Option<RdmaNetns>,
}

/// What to do with access control services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Acs {
    /// Redirection between GPU and NIC is switched off.
    Disable,
}

/// Network namespace mode of RDMA devices (`rdma system show`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RdmaNetns {
    /// Every namespace sees every device.
    Shared,
    /// A device belongs to one namespace.
    Exclusive,
}
