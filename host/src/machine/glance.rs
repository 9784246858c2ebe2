//! What tells at a glance that a machine is no longer as it was: few reads, compared as a whole and never looked into.
//!
//! Reading every fact takes a machine with eight GPUs some ten milliseconds of processor time, a glance a twentieth of that.
//! It is no notification of the kernel's: sysfs tells no inotify watch of devices, and a socket for link changes would wake
//! its reader for every pod's interface. The node agent looks between two turns.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use topology::fact::Fact;
use topology::machine::Machine;

use super::nics::{INFINIBAND, NET, VERBS};
use crate::facts::kernel::MODULES;
use crate::root::{Root, Stamp, fact};

/// Directory of the device nodes of verbs.
const VERBS_NODES: &str = "/dev/infiniband";

/// IPv4 addresses and routes of the host, and its IPv6 addresses (`net/ipv4/fib_trie.c`, `net/ipv6/addrconf.c`).
const ADDRESSES: [&str; 2] = ["/proc/1/net/fib_trie", "/proc/1/net/if_inet6"];

/// What was seen: two that are equal tell of no change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Names and inode numbers: an entry that went and came back has its name and another number.
    listings: Vec<Fact<BTreeMap<String, u64>>>,
    /// Contents of short files.
    texts: Vec<Fact<String>>,
    /// Hashes of longer ones.
    hashes: Vec<Fact<u64>>,
    /// Files and the files in folders.
    stamps: Vec<Fact<BTreeMap<String, Stamp>>>,
}

impl Glance {
    /// RDMA devices, their uverbs devices and device nodes, and the states of the ports of the physical functions of
    /// `machine`: what a workload feels at once. Virtual functions follow theirs.
    #[must_use]
    pub fn devices(root: &Root, machine: &Machine) -> Self {
        let nics = machine.physical_nics();
        let named = nics.filter_map(|nic| Some((nic.rdma.as_ref()?, &nic.ports)));
        let ports = named.flat_map(|(name, ports)| {
            let state = move |number| format!("{INFINIBAND}/{name}/ports/{number}/state");
            ports.iter().map(move |port| state(port.number))
        });
        Self {
            listings: [INFINIBAND, VERBS, VERBS_NODES]
                .map(|path| fact(root.inodes(path)))
                .into(),
            texts: ports.map(|path| root.read(&path)).collect(),
            hashes: Vec::new(),
            stamps: Vec::new(),
        }
    }

    /// Loaded modules, addresses of the host, MTUs of the physical functions of `machine`, and the files `places` or those
    /// in the folders `places`.
    #[must_use]
    pub fn settings<'a>(
        root: &Root,
        machine: &Machine,
        places: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let nics = machine.physical_nics();
        let netdevs = nics.flat_map(|nic| &nic.netdevs);
        let files = [MODULES].into_iter().chain(ADDRESSES);
        Self {
            listings: Vec::new(),
            texts: netdevs
                .map(|netdev| root.read(&format!("{NET}/{netdev}/mtu")))
                .collect(),
            hashes: files
                .map(|path| fact(root.bytes(path)).map(|content| hash(&content)))
                .collect(),
            stamps: places
                .into_iter()
                .map(|path| fact(root.stamps(path)))
                .collect(),
        }
    }
}

fn hash(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
