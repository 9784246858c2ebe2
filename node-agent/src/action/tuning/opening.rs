//! What a firewall lets in, and through whom. Pure. Nothing here can hold more than addresses, ports and plain names, so that
//! nothing can stand in a tool's argument that the tool would understand otherwise.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Who keeps the host's firewall.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Via {
    /// firewalld, in a zone.
    Firewalld {
        /// The zone.
        zone: String,
    },
    /// ufw.
    Ufw,
    /// nftables, in a base chain that drops.
    Nft {
        /// Family of the table.
        family: String,
        /// The table.
        table: String,
        /// The chain.
        chain: String,
    },
}

impl Via {
    /// Whether every name is one that can stand in an argument as it is.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Firewalld { zone } => is_name(zone),
            Self::Ufw => true,
            Self::Nft {
                family,
                table,
                chain,
            } => [family, table, chain].into_iter().all(|name| is_name(name)),
        }
    }
}

fn is_name(text: &str) -> bool {
    let first = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Firewalld { zone } => write!(f, "firewalld zone {zone}"),
            Self::Ufw => write!(f, "ufw"),
            Self::Nft {
                family,
                table,
                chain,
            } => write!(f, "nft chain {family} {table} {chain}"),
        }
    }
}

/// Transport protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// The name that every tool uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// Packets that are let in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opening {
    /// Network address, host bits zero.
    network: IpAddr,
    /// Length of its prefix.
    prefix: u8,
    /// Transport protocol.
    protocol: Protocol,
    /// First and last destination port.
    ports: (u16, u16),
}

/// A text that is no address range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address range; write address/prefix, as in 10.10.0.0/16")]
pub struct OpeningError(String);

impl Opening {
    /// From the range `cidr`, whose host bits do not count.
    pub fn new(cidr: &str, protocol: Protocol, ports: (u16, u16)) -> Result<Self, OpeningError> {
        let wrong = || OpeningError(cidr.to_owned());
        let (address, prefix) = cidr.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        let network = masked(address, prefix).ok_or_else(wrong)?;
        Ok(Self {
            network,
            prefix,
            protocol,
            ports,
        })
    }

    /// The range as [`Self::cidr`] writes it.
    pub fn range(cidr: &str) -> Result<String, OpeningError> {
        Self::new(cidr, Protocol::Tcp, (0, 0)).map(|opening| opening.cidr())
    }

    /// Transport protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// First and last destination port.
    #[must_use]
    pub fn ports(&self) -> (u16, u16) {
        self.ports
    }

    /// The range.
    #[must_use]
    pub fn cidr(&self) -> String {
        format!("{}/{}", self.network, self.prefix)
    }

    /// Whether it is an IPv4 range.
    #[must_use]
    pub fn is_v4(&self) -> bool {
        self.network.is_ipv4()
    }

    /// Whether the range lies in `other` (`10.0.0.0/8`, or a single address).
    #[must_use]
    pub fn is_within(&self, other: &str) -> bool {
        let full = if self.is_v4() { "32" } else { "128" };
        let (address, prefix) = other.split_once('/').unwrap_or((other, full));
        let (Ok(address), Ok(prefix)) = (address.parse::<IpAddr>(), prefix.parse::<u8>()) else {
            return false;
        };
        let same_family = address.is_ipv4() == self.is_v4();
        same_family
            && prefix <= self.prefix
            && masked(self.network, prefix) == masked(address, prefix)
    }
}

/// The address with its host bits cleared; `None` for a prefix that is too long.
fn masked(address: IpAddr, prefix: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let host = 32_u32.checked_sub(prefix.into())?;
            let mask = u32::MAX.checked_shl(host).unwrap_or(0);
            Some(IpAddr::V4((address.to_bits() & mask).into()))
        }
        IpAddr::V6(address) => {
            let host = 128_u32.checked_sub(prefix.into())?;
            let mask = u128::MAX.checked_shl(host).unwrap_or(0);
            Some(IpAddr::V6((address.to_bits() & mask).into()))
        }
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.ports;
        write!(f, "{} {first}", self.protocol.name())?;
        if last != first {
            write!(f, "-{last}")?;
        }
        write!(f, " from {}", self.cidr())
    }
}

#[cfg(test)]
mod tests;
