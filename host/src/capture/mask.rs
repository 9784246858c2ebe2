//! Masks for what identifies a machine or its owner. Pure.
//!
//! A value is replaced by its number in the order in which it was met, so that equal values stay equal and nothing of
//! the original can be computed back.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::address::Networks;

/// Hexadecimal digits at the end of a name that may be an identifier.
const SHORTEST_IDENTIFIER: usize = 7;

/// Values met so far, by kind.
#[derive(Default)]
pub(super) struct Masks {
    met: BTreeMap<(&'static str, String), u64>,
    counts: BTreeMap<&'static str, u64>,
    networks: Networks,
}

impl Masks {
    /// The value's number within its kind, from 1.
    fn number(&mut self, kind: &'static str, value: &str) -> u64 {
        let key = (kind, value.to_ascii_lowercase());
        if let Some(number) = self.met.get(&key) {
            return *number;
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        self.met.insert(key, *count);
        *count
    }

    /// A MAC address, or an InfiniBand hardware address of 20 bytes; zeros stay.
    pub(super) fn mac(&mut self, address: &str) -> String {
        if is_zero(address) {
            return address.to_owned();
        }
        let bytes = address.split(':').count().max(6);
        let number = self.number("mac", address).to_be_bytes();
        let tail = number[3..].iter().map(|byte| format!("{byte:02x}"));
        let head = ["02".to_owned()]
            .into_iter()
            .chain(vec!["00".to_owned(); bytes - 6]);
        head.chain(tail).collect::<Vec<_>>().join(":")
    }

    /// A GUID in four groups; zeros stay.
    pub(super) fn guid(&mut self, guid: &str) -> String {
        if is_zero(guid) {
            return guid.to_owned();
        }
        let number = self.number("guid", guid);
        format!(
            "0200:0000:{:04x}:{:04x}",
            number >> 16 & 0xffff,
            number & 0xffff
        )
    }

    /// A GID: link-local stays link-local, an IPv4 address becomes one for benchmarks (RFC 2544), any other one for
    /// documentation (RFC 3849).
    pub(super) fn gid(&mut self, gid: &str) -> String {
        if is_zero(gid) {
            return gid.to_owned();
        }
        if let Some(guid) = gid.strip_prefix("fe80:0000:0000:0000:") {
            return format!("fe80:0000:0000:0000:{}", self.guid(guid));
        }
        let number = self.number("gid", gid);
        let (high, low) = (number >> 16 & 1, number & 0xffff);
        if gid.starts_with("0000:0000:0000:0000:0000:ffff:") {
            return format!(
                "0000:0000:0000:0000:0000:ffff:c6{:02x}:{low:04x}",
                0x12 + high
            );
        }
        format!("2001:0db8:0000:0000:0000:0000:{high:04x}:{low:04x}")
    }

    /// A GPU's UUID; the driver's question marks stay.
    pub(super) fn gpu_uuid(&mut self, uuid: &str) -> String {
        if uuid.contains('?') {
            return uuid.to_owned();
        }
        format!(
            "GPU-00000000-0000-0000-0000-{:012x}",
            self.number("gpu", uuid)
        )
    }

    /// A device's name: udev may have put its MAC address or GUID into it (`enx…`, `rocex…`).
    pub(super) fn name(&mut self, name: &str) -> String {
        match embedded(name) {
            Some((head, digits)) => {
                let number = self.number("name", digits);
                format!("{head}x{number:0width$x}", width = digits.len())
            }
            None => name.to_owned(),
        }
    }

    /// An interface's name: beside what [`Self::name`] knows, those that container networks make of an identifier (`veth…`,
    /// `cali…`, `br-…`).
    pub(super) fn link(&mut self, name: &str) -> String {
        let head = name.trim_end_matches(|sign: char| sign.is_ascii_hexdigit());
        let digits = &name[head.len()..];
        if embedded(name).is_some() || digits.len() < SHORTEST_IDENTIFIER {
            return self.name(name);
        }
        let number = self.number("link", name);
        format!("{head}{number:0width$x}", width = digits.len())
    }

    /// A routing table: the kernel's own and numbers stay.
    pub(super) fn table(&mut self, name: &str) -> String {
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || matches!(name, "all" | "default" | "local" | "main") {
            return name.to_owned();
        }
        format!("table{}", self.number("table", name))
    }

    /// An IP address or network; what is none, such as `default`, is kept only where it is one of the words that `ip` uses.
    pub(super) fn address(&mut self, text: &str) -> String {
        if let Ok(address) = text.parse::<IpAddr>() {
            return self.networks.mask(address).to_string();
        }
        match (text, text.parse::<IpNet>()) {
            ("all" | "default", _) => text.to_owned(),
            (_, Ok(net)) => {
                let address = self.networks.mask(net.addr());
                let masked = IpNet::new(address, net.prefix_len());
                masked.map_or_else(|_| String::new(), |masked| masked.trunc().to_string())
            }
            (_, Err(_)) => String::new(),
        }
    }

    /// Names separated by white space.
    pub(super) fn names(&mut self, names: &str) -> String {
        names
            .split_whitespace()
            .map(|name| self.name(name))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// A path, name by name.
    pub(super) fn path(&mut self, path: &str) -> String {
        path.split('/')
            .map(|name| self.name(name))
            .collect::<Vec<_>>()
            .join("/")
    }
}

/// What a name has before the `x`, and the address that udev has put behind it.
fn embedded(name: &str) -> Option<(&str, &str)> {
    let found = name.rsplit_once('x')?;
    (matches!(found.1.len(), 12 | 16) && is_hex(found.1)).then_some(found)
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0' | b':'))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `resource` without the machine's physical addresses: each range starts at 0 and keeps its size and flags.
pub(super) fn resource(text: &str) -> String {
    let number = |word: Option<&str>| word.and_then(crate::parse::hex::<u64>);
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (Some(start), Some(end)) = (number(words.next()), number(words.next())) else {
            return String::new();
        };
        let flags = number(words.next()).unwrap_or_default();
        format!(
            "0x{:016x} 0x{:016x} 0x{flags:016x}",
            0,
            end.saturating_sub(start)
        )
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Values of XML attributes that identify a host or a device.
pub(super) fn xml(text: &str) -> String {
    ["guid", "host_hash"]
        .iter()
        .fold(text.to_owned(), |text, name| blank_attribute(&text, name))
}

fn blank_attribute(text: &str, name: &str) -> String {
    let opening = format!(" {name}=\"");
    let mut parts = text.split(&opening);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| {
        let rest = part.split_once('"').map_or("", |(_, rest)| rest);
        format!("{done}{opening}0x0\"{rest}")
    })
}
