//! Topology files of NCCL that this machine has: what `/etc/nccl.conf` names, and what a cloud's daemon left.

use topology::fact::Fact;

use super::Sourced;
use crate::root::Root;

/// NCCL's settings for the whole machine.
pub(crate) const NCCL_CONF: &str = "/etc/nccl.conf";
/// What NCCL reads in a virtual machine when nothing else is set (`src/graph/topo.cc`).
pub(crate) const VIRTUAL_TOPOLOGY: &str = "/var/run/nvidia-topologyd/virtualTopology.xml";

/// `NCCL_TOPO_FILE` of `/etc/nccl.conf`; the last line wins, as in NCCL (`src/misc/param.cc`).
#[must_use]
pub fn nccl_topo_file(root: &Root) -> Sourced<String> {
    let value = match root.read(NCCL_CONF) {
        Fact::Known(text) => Fact::from(text.lines().rev().find_map(topo_file).map(str::to_owned)),
        other => other,
    };
    Sourced::new(NCCL_CONF, value)
}

fn topo_file(line: &str) -> Option<&str> {
    let (key, value) = line.trim().split_once('=')?;
    (key.trim() == "NCCL_TOPO_FILE")
        .then(|| value.trim())
        .filter(|value| !value.is_empty())
}

/// The files that NCCL would read here, first the one that it prefers, with their text.
#[must_use]
pub fn files(root: &Root) -> Vec<Sourced<String>> {
    let named = nccl_topo_file(root).fact.known().cloned();
    let paths = named.into_iter().chain([VIRTUAL_TOPOLOGY.to_owned()]);
    let files = paths.map(|path| Sourced::new(path.clone(), root.read(&path)));
    files
        .filter(|file| file.fact != Fact::Absent || file.source != VIRTUAL_TOPOLOGY)
        .collect()
}
