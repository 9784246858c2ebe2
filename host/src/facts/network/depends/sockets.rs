//! Established TCP connections of the machine's first process' network namespace: `/proc/1/net/tcp`, `tcp6`
//! (`net/ipv4/tcp_ipv4.c`, `get_tcp4_sock`).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use crate::facts::Sourced;
use crate::root::Root;

/// The kubelet's own port, to which API servers connect.
const KUBELET: u16 = 10250;

/// The kernel's number of the state ESTABLISHED.
const ESTABLISHED: &str = "01";

/// A connection of the kubelet, without the port that changes with each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// This node's address.
    pub local: IpAddr,
    /// The other's address.
    pub remote: IpAddr,
    /// The server's port: the API server's, or the kubelet's own.
    pub port: u16,
}

/// Connections to one of `servers` (ports), and to the kubelet.
pub(super) fn connections(root: &Root, servers: &BTreeSet<u16>) -> Sourced<Vec<Connection>> {
    let found = RefCell::new(BTreeSet::new());
    let mut seen = false;
    let source = "/proc/1/net/tcp, /proc/1/net/tcp6";
    for path in source.split(", ") {
        // Such a table may be long: it is read line by line, and little of it is kept.
        let note = |line: &str| {
            found.borrow_mut().extend(connection(line, servers));
            false
        };
        match root.any_line(path, note) {
            Ok(_) => seen = true,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Sourced::new(source, Fact::Unreadable(error.chain())),
        }
    }
    let found: Vec<_> = found.into_inner().into_iter().collect();
    Sourced::new(source, Fact::from(seen.then_some(found)))
}

fn connection(line: &str, servers: &BTreeSet<u16>) -> Option<Connection> {
    let mut words = line.split_whitespace().skip(1);
    let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
    if state != ESTABLISHED {
        return None;
    }
    let ((local, own), (remote, other)) = (endpoint(local)?, endpoint(remote)?);
    let port = if servers.contains(&other) {
        other
    } else if own == KUBELET {
        own
    } else {
        return None;
    };
    let outside = !local.is_loopback() && !remote.is_loopback();
    outside.then_some(Connection {
        local,
        remote,
        port,
    })
}

/// `0100007F:1F90`: words of 32 bits in the machine's byte order, port in hex.
fn endpoint(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = address.get(at..at + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut bytes = [0; 16];
            for (into, byte) in bytes.iter_mut().zip(words.as_flattened()) {
                *into = *byte;
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((address, port))
}
