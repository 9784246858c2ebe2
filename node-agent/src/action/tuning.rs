//! Changes of the host around the NICs: PCIe, firmware, firewall, RDMA namespaces. Pure.

mod opening;

use crds::node::Cost;
use host::facts::tuning::pcie::{COMPLETION_REDIRECT, REQUEST_REDIRECT, UPSTREAM_FORWARDING};
use serde::{Deserialize, Serialize};
use topology::pci::PciAddress;

use super::{Explain, Lasts};

pub use opening::{Opening, OpeningError, Protocol, Via};

/// The module option's file, ours alone.
pub const NETNS_FILE: &str = "/etc/modprobe.d/gpurdma-rdma-netns.conf";

/// A change of the host around the NICs: PCIe, firmware, firewall, RDMA namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TuningChange {
    /// Sets which of a port's ACS bits redirect traffic between peers; its other bits are kept.
    AcsRedirects {
        /// The port.
        port: PciAddress,
        /// The redirecting bits that are on afterwards.
        bits: u16,
    },
    /// Sets a function's maximum read request.
    MaxReadRequest {
        /// The function.
        function: PciAddress,
        /// Bytes.
        bytes: u32,
    },
    /// Writes how RDMA devices and network namespaces go together from the next load of `ib_core`; `None` takes our file away.
    RdmaNetns {
        /// Whether every namespace sees every device.
        shared: Option<bool>,
    },
    /// Writes a port's link type into firmware, for the next boot.
    LinkType {
        /// The card's function.
        function: PciAddress,
        /// Port of the card, from 1.
        port: u8,
        /// What runs on the wire.
        link: LinkType,
    },
    /// Opens or closes the host's firewall for some packets.
    Firewall {
        /// Through whom.
        via: Via,
        /// For what.
        opening: Opening,
        /// Whether they are let in.
        open: bool,
    },
}

/// Link types of firmware, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LinkType {
    /// `IB(1)`.
    InfiniBand,
    /// `ETH(2)`.
    Ethernet,
}

impl LinkType {
    /// The number in firmware.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::InfiniBand => 1,
            Self::Ethernet => 2,
        }
    }

    /// The type of a number in firmware; there is a third, which leaves the choice to the card.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        [Self::InfiniBand, Self::Ethernet]
            .into_iter()
            .find(|link| link.number() == number)
    }
}

/// The redirecting bits as `lspci` writes them.
#[must_use]
pub fn redirects(bits: u16) -> String {
    let sign = |bit: u16| if bits & bit == 0 { '-' } else { '+' };
    format!(
        "ReqRedir{} CmpltRedir{} UpstreamFwd{}",
        sign(REQUEST_REDIRECT),
        sign(COMPLETION_REDIRECT),
        sign(UPSTREAM_FORWARDING)
    )
}

impl Explain for TuningChange {
    fn kind(&self) -> &'static str {
        match self {
            Self::AcsRedirects { .. } => "SetAcsRedirects",
            Self::MaxReadRequest { .. } => "SetMaxReadRequest",
            Self::RdmaNetns { .. } => "SetRdmaNetns",
            Self::LinkType { .. } => "SetLinkType",
            Self::Firewall { .. } => "SetFirewall",
        }
    }

    fn target(&self) -> String {
        match self {
            Self::AcsRedirects { port, .. } => port.to_string(),
            Self::MaxReadRequest { function, .. } => function.to_string(),
            Self::RdmaNetns { .. } => "ib_core".to_owned(),
            Self::LinkType { function, port, .. } => format!("{function} port {port}"),
            Self::Firewall { via, opening, .. } => format!("{via}: {opening}"),
        }
    }

    fn desired(&self) -> String {
        match self {
            Self::AcsRedirects { bits, .. } => redirects(*bits),
            Self::MaxReadRequest { bytes, .. } => bytes.to_string(),
            Self::RdmaNetns { shared: Some(true) } => "shared".to_owned(),
            Self::RdmaNetns {
                shared: Some(false),
            } => "exclusive".to_owned(),
            Self::RdmaNetns { shared: None } => "(not set)".to_owned(),
            Self::LinkType { link, .. } => format!("{link:?}"),
            Self::Firewall { open, .. } => if *open { "open" } else { "closed" }.to_owned(),
        }
    }

    /// Traffic between peers changes its way while ACS changes; a new read request size is for new requests only.
    fn cost(&self) -> Cost {
        match self {
            Self::AcsRedirects { .. } => Cost::Traffic,
            Self::MaxReadRequest { .. } | Self::Firewall { .. } => Cost::None,
            Self::RdmaNetns { .. } | Self::LinkType { .. } => Cost::Reboot,
        }
    }

    fn lasts(&self) -> Lasts {
        match self {
            Self::AcsRedirects { .. } => Lasts::Boot,
            Self::MaxReadRequest { .. } => Lasts::Device,
            Self::RdmaNetns { .. } | Self::LinkType { .. } => Lasts::Always,
            Self::Firewall { via, .. } => match via {
                Via::Nft { .. } => Lasts::Boot,
                Via::Firewalld { .. } | Via::Ufw => Lasts::Always,
            },
        }
    }

    fn effect(&self) -> String {
        match self {
            Self::AcsRedirects { bits: 0, .. } => {
                "traffic between GPU and NIC takes the direct way, until the next boot".to_owned()
            }
            Self::AcsRedirects { .. } => {
                "traffic between peers goes up to the root complex again".to_owned()
            }
            Self::MaxReadRequest { bytes, .. } => {
                format!("the NIC reads up to {bytes} bytes at once, until it is reset")
            }
            Self::RdmaNetns { shared: None } => {
                format!("{NETNS_FILE} is taken away; in effect after a reboot")
            }
            Self::RdmaNetns { .. } => format!(
                "{NETNS_FILE} is written; in effect after a reboot, where the initial RAM disk loads ib_core after that is rebuilt"
            ),
            Self::LinkType { .. } => "written to firmware; in effect after a reboot".to_owned(),
            Self::Firewall { open: true, .. } => {
                "connections of NCCL's bootstrap and of software RDMA get in from that range"
                    .to_owned()
            }
            Self::Firewall { open: false, .. } => {
                "our rule goes; what other rules accept still gets in".to_owned()
            }
        }
    }

    fn verification(&self) -> String {
        match self {
            Self::AcsRedirects { port, .. } => {
                format!("the ACS control register of {port}, read back")
            }
            Self::MaxReadRequest { function, .. } => {
                format!("the device control register of {function}, read back")
            }
            Self::RdmaNetns { .. } => format!(
                "the text of {NETNS_FILE}; after the reboot /sys/module/ib_core/parameters/netns_mode"
            ),
            Self::LinkType { port, .. } => {
                format!(
                    "the next value of LINK_TYPE_P{port}; after the reboot the port's link layer"
                )
            }
            Self::Firewall { via, .. } => format!("the rules that {via} lists"),
        }
    }
}
