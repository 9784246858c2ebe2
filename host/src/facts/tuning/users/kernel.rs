//! Kernel modules above the RDMA stack, and what shows that they are in use: references that no module holds, connections,
//! mounts, block devices.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::Resource;
use crate::facts::kernel::{self, Module};
use crate::root::Root;

/// Modules whose holders use RDMA.
const CORE: &[&str] = &["ib_cm", "ib_core", "iw_cm", "rdma_cm"];
/// Parts of the stack, which use each other: the core, its user interfaces, IP over InfiniBand, drivers of this vendor, and
/// drivers that serve GPU memory to it.
const STACK: &[&str] = &[
    "ib_cm",
    "ib_core",
    "ib_ipoib",
    "ib_mad",
    "ib_ucm",
    "ib_umad",
    "ib_uverbs",
    "iw_cm",
    "mlx4_ib",
    "mlx5_ib",
    "nv_peer_mem",
    "nvidia_peermem",
    "rdma_cm",
    "rdma_rxe",
    "rdma_ucm",
    "siw",
];
/// Mounts of the host.
const MOUNTS: &str = "/proc/1/mounts";
/// Controllers of `NVMe`.
const NVME: &str = "/sys/class/nvme";

/// A module above the RDMA stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelUser {
    /// Its name.
    pub module: String,
    /// References to it that are not of other modules.
    pub references: Fact<u64>,
    /// Its queue pairs and connections; unreadable where nobody could ask the kernel.
    pub connections: Fact<u64>,
    /// Mounts and devices over it.
    pub uses: Vec<String>,
}

pub(super) fn read(
    root: &Root,
    queue_pairs: &Fact<Vec<Resource>>,
    connections: &Fact<Vec<Resource>>,
) -> Fact<Vec<KernelUser>> {
    let uses = match uses(root) {
        Ok(uses) => uses,
        Err(why) => return Fact::Unreadable(why),
    };
    kernel::modules(root).fact.map(|modules| {
        let names = above(&modules);
        let own = modules
            .iter()
            .filter(|module| names.contains(module.name.as_str()));
        own.map(|module| KernelUser {
            module: module.name.clone(),
            references: references(module),
            connections: connected(&module.name, queue_pairs, connections),
            uses: uses.get(module.name.as_str()).cloned().unwrap_or_default(),
        })
        .collect()
    })
}

/// Holders of the core that are no part of the stack.
fn above(modules: &[Module]) -> BTreeSet<&str> {
    let core = modules
        .iter()
        .filter(|module| CORE.contains(&module.name.as_str()));
    let holders = core.flat_map(|module| module.holders.iter().map(String::as_str));
    holders.filter(|name| !STACK.contains(name)).collect()
}

fn references(module: &Module) -> Fact<u64> {
    let held = module.holders.len() as u64;
    module
        .references
        .clone()
        .map(|all| all.saturating_sub(held))
}

/// Rows without a process that bear the module's name.
fn connected(
    name: &str,
    queue_pairs: &Fact<Vec<Resource>>,
    connections: &Fact<Vec<Resource>>,
) -> Fact<u64> {
    let count = |rows: &[Resource]| {
        let own = |row: &&Resource| row.pid.is_none() && row.comm.as_deref() == Some(name);
        rows.iter().filter(own).count() as u64
    };
    match (queue_pairs, connections) {
        (Fact::Known(a), Fact::Known(b)) => Fact::Known(count(a) + count(b)),
        (Fact::Known(a), _) | (_, Fact::Known(a)) if count(a) > 0 => Fact::Known(count(a)),
        (Fact::Unreadable(why), _) | (_, Fact::Unreadable(why)) => Fact::Unreadable(why.clone()),
        _ => Fact::Absent,
    }
}

/// Module → mounts and devices over it.
fn uses(root: &Root) -> Result<BTreeMap<&'static str, Vec<String>>, String> {
    let mut uses: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let mounts = match root.read(MOUNTS) {
        Fact::Known(text) => text,
        Fact::Absent => String::new(),
        Fact::Unreadable(why) => return Err(why),
    };
    for (module, place) in mounts.lines().filter_map(mount) {
        uses.entry(module).or_default().push(place);
    }
    for name in root.entries(NVME).known().cloned().unwrap_or_default() {
        if root
            .text(&format!("{NVME}/{name}/transport"))
            .is_ok_and(|text| text == "rdma")
        {
            uses.entry("nvme_rdma").or_default().push(name);
        }
    }
    Ok(uses)
}

/// `source place type options 0 0`.
fn mount(line: &str) -> Option<(&'static str, String)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [_, place, kind, options, ..] = words[..] else {
        return None;
    };
    let has = |option: &str| options.split(',').any(|one| one == option);
    let module = match kind {
        "lustre" => "ko2iblnd",
        "nfs" | "nfs4" if has("proto=rdma") => "rpcrdma",
        "9p" if has("trans=rdma") => "9pnet_rdma",
        "cifs" | "smb3" if has("rdma") => "cifs",
        _ => return None,
    };
    Some((module, format!("mount {place}")))
}
