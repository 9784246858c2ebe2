//! Masks for IP addresses that keep what matters of them: which lie in one network. Pure.
//!
//! Two addresses that have their first N bits in common have them in common afterwards. Bits are replaced one by one, by the
//! order in which a network was met; nothing of the original can be computed back. Ranges that everybody has (RFC 1918, 6598,
//! 3927, 4193) stay recognisable; other addresses become reserved ones (RFC 1112) or ones for documentation (RFC 9637).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Private IPv4 ranges, whose prefix is kept.
const PRIVATE: &[([u8; 4], u32)] = &[
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 168, 0, 0], 16),
];
/// First octets of masked public addresses.
const RESERVED: u32 = 240;
/// How many of them there are; more public networks share the last one.
const RESERVED_COUNT: u32 = 15;
/// Documentation addresses (RFC 9637): 20 bits are fixed, 12 number the network.
const DOCUMENTATION: u128 = 0x3fff << 112;

/// Networks met so far.
#[derive(Default)]
pub(super) struct Networks {
    /// For each prefix (its length, its bits) the next bit that was met first.
    first: BTreeMap<(u32, u128), bool>,
    /// Leading bits of public addresses, by the order in which they were met.
    public: BTreeMap<u128, u32>,
    counts: [u32; 2],
}

impl Networks {
    /// An address; those of no particular machine stay.
    pub(super) fn mask(&mut self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => self.v4(address).into(),
            IpAddr::V6(address) => self.v6(address).into(),
        }
    }

    fn v4(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        if address.is_unspecified() || address.is_loopback() || is_common_v4(address) {
            return address;
        }
        let bits = address.to_bits();
        let of = |&(network, length): &([u8; 4], u32)| {
            let kept = u32::MAX << (32 - length);
            (bits & kept == u32::from_be_bytes(network)).then_some((bits & kept, length))
        };
        let (head, length) = if let Some(private) = PRIVATE.iter().find_map(of) {
            private
        } else {
            let number = self.number(0, (bits >> 24).into());
            let octet = RESERVED + number.min(RESERVED_COUNT - 1);
            (octet << 24, 8)
        };
        let tail = self.tail(bits.into(), 32, length);
        Ipv4Addr::from_bits(head | u32::try_from(tail).unwrap_or_default())
    }

    fn v6(&mut self, address: Ipv6Addr) -> Ipv6Addr {
        let is_common = address.is_unspecified() || address.is_loopback();
        if is_common || address.is_multicast() {
            return address;
        }
        if let Some(four) = address.to_ipv4_mapped() {
            return self.v4(four).to_ipv6_mapped();
        }
        let bits = address.to_bits();
        let (head, length) = if address.is_unicast_link_local() {
            (0xfe80 << 112, 64)
        } else if address.is_unique_local() {
            (bits >> 120 << 120, 8)
        } else {
            let number = self.number(1, bits >> 96).min(0xfff);
            (DOCUMENTATION | u128::from(number) << 96, 32)
        };
        Ipv6Addr::from_bits(head | self.tail(bits, 128, length))
    }

    fn number(&mut self, family: usize, bits: u128) -> u32 {
        // The families' leading bits differ in length: a mark keeps them apart.
        let key = bits | (family as u128) << 64;
        let next = self.counts[family];
        let number = *self.public.entry(key).or_insert(next);
        self.counts[family] = next.max(number + 1);
        number
    }

    /// The bits from `from` on: of each pair of networks the one that was met first has a zero.
    fn tail(&mut self, bits: u128, width: u32, from: u32) -> u128 {
        let bit = |place: u32| bits >> (width - 1 - place) & 1 == 1;
        (from..width).fold(0, |done, place| {
            // The width tells the families apart.
            let prefix = (width << 8 | place, bits >> (width - place).min(127));
            let first = *self.first.entry(prefix).or_insert_with(|| bit(place));
            done << 1 | u128::from(bit(place) != first)
        })
    }
}

/// Multicast, broadcast.
fn is_common_v4(address: Ipv4Addr) -> bool {
    address.is_multicast() || address.is_broadcast()
}

#[cfg(test)]
mod tests;
