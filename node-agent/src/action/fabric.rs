//! Changes of RDMA ports and network interfaces. Pure.
//!
//! None of them is written to disk: they last until the interface or the driver goes. So each carries the index of the
//! interface that it is about: another index is another interface of the same name, and that its setting is gone is
//! nobody's doing.

mod explain;

use std::collections::BTreeSet;
use std::fmt;

use host::facts::network::Ets;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// One interface, and no later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Netdev {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
}

impl fmt::Display for Netdev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// One port of an RDMA device, and the interface by which it is told from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RdmaPort {
    /// RDMA device.
    pub device: String,
    /// Port number.
    pub port: u32,
    /// Its interface.
    pub netdev: Netdev,
}

impl fmt::Display for RdmaPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.device, self.port)
    }
}

/// IPoIB mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Transport {
    /// Unreliable datagram.
    Datagram,
    /// Connected.
    Connected,
}

impl Transport {
    /// The kernel's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Datagram => "datagram",
            Self::Connected => "connected",
        }
    }
}

/// A side of congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EcnSide {
    /// Reacts to notifications.
    Reaction,
    /// Notifies.
    Notification,
}

impl EcnSide {
    /// Directory below the interface's `ecn`.
    #[must_use]
    pub fn directory(self) -> &'static str {
        match self {
            Self::Reaction => "roce_rp",
            Self::Notification => "roce_np",
        }
    }
}

/// A change of RDMA ports and network interfaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FabricChange {
    /// Sets an interface's MTU.
    Mtu {
        /// The interface.
        netdev: Netdev,
        /// Bytes.
        mtu: u32,
    },
    /// Switches an interface on or off.
    Up {
        /// The interface.
        netdev: Netdev,
        /// Whether on.
        up: bool,
    },
    /// Adds an address or takes it away.
    Address {
        /// The interface.
        netdev: Netdev,
        /// Address and prefix length.
        address: IpNet,
        /// Whether it is to be there.
        present: bool,
    },
    /// Sets the mode of an IPoIB interface.
    IpoibMode {
        /// The interface.
        netdev: Netdev,
        /// The mode.
        mode: Transport,
    },
    /// Makes the child interface of a partition, or takes it away.
    Partition {
        /// The parent.
        netdev: Netdev,
        /// `P_Key` with the membership bit.
        pkey: u16,
        /// Whether it is to be there.
        present: bool,
    },
    /// Sets the priorities with flow control, exactly.
    Pfc {
        /// The interface.
        netdev: Netdev,
        /// The priorities.
        priorities: BTreeSet<u8>,
    },
    /// Sets the bandwidth of the traffic classes.
    Ets {
        /// The interface.
        netdev: Netdev,
        /// The table.
        table: Ets,
    },
    /// Gives packets with a DSCP a priority; `None` takes the entry away.
    Dscp {
        /// The interface.
        netdev: Netdev,
        /// The DSCP.
        dscp: u8,
        /// The priority.
        priority: Option<u8>,
    },
    /// Sets what the port takes a packet's priority from, with an out-of-tree driver.
    Trust {
        /// The interface.
        netdev: Netdev,
        /// Whether the DSCP; else the VLAN tag's priority.
        dscp: bool,
    },
    /// Switches congestion notification on or off for one priority.
    Ecn {
        /// The interface.
        netdev: Netdev,
        /// The side.
        side: EcnSide,
        /// The priority.
        priority: u8,
        /// Whether on.
        on: bool,
    },
    /// Sets the `RoCE` mode of RDMA-CM connections.
    RoceMode {
        /// The port.
        port: RdmaPort,
        /// Whether version 2; else version 1.
        v2: bool,
    },
    /// Sets the type of service of RDMA-CM connections.
    Tos {
        /// The port.
        port: RdmaPort,
        /// The type of service.
        tos: u8,
    },
    /// Sets the traffic class of all connections, with an out-of-tree driver.
    TrafficClass {
        /// The port.
        port: RdmaPort,
        /// The traffic class.
        class: u8,
    },
}

/// RDMA-CM's word for a `RoCE` mode.
#[must_use]
pub fn roce_mode(v2: bool) -> &'static str {
    if v2 { "RoCE v2" } else { "IB/RoCE v1" }
}

/// Name of the child interface of a partition; the kernel's own has the full member's key too.
#[must_use]
pub fn child_name(parent: &str, pkey: u16) -> String {
    format!("{parent}.{:04x}", pkey | 0x8000)
}

impl FabricChange {
    /// The interface that it is about.
    #[must_use]
    pub fn netdev(&self) -> &Netdev {
        match self {
            Self::Mtu { netdev, .. }
            | Self::Up { netdev, .. }
            | Self::Address { netdev, .. }
            | Self::IpoibMode { netdev, .. }
            | Self::Partition { netdev, .. }
            | Self::Pfc { netdev, .. }
            | Self::Ets { netdev, .. }
            | Self::Dscp { netdev, .. }
            | Self::Trust { netdev, .. }
            | Self::Ecn { netdev, .. } => netdev,
            Self::RoceMode { port, .. }
            | Self::Tos { port, .. }
            | Self::TrafficClass { port, .. } => &port.netdev,
        }
    }
}
