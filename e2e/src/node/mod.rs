//! One node = one isolated machine: own root (overlay over `/`), `/dev`, `/run`, `/sys`, PID and network namespace.
//!
//! [`init`] is the first process of the node. Order matters: root, then the machine that it shows, then containerd
//! and kubelet, which read that machine.

mod machine;
mod root;
mod services;

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use root::disk;

/// What a node is made of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// `node-<index>`.
    pub name: String,
    /// Position, which gives the addresses.
    pub index: usize,
    /// Name of the machine file that it shows; none shows a machine without GPU and NIC.
    pub machine: Option<String>,
    /// Topology Manager policy of the kubelet.
    pub topology_policy: String,
    /// Whether the kubelet sees two NUMA nodes.
    pub two_numa_nodes: bool,
    /// Boot id that the node shows.
    pub boot_id: String,
}

/// Address of a node on the bridge.
#[must_use]
pub fn address(index: usize) -> String {
    format!("10.245.0.{}", 10 + index)
}

/// Makes this process the init of a node; returns when the node ends.
pub fn init(work: &Path, spec_file: &Path) -> Result<()> {
    let text = std::fs::read_to_string(spec_file)
        .with_context(|| format!("read {}", spec_file.display()))?;
    let spec: NodeSpec = serde_json::from_str(&text)
        .with_context(|| format!("understand {}", spec_file.display()))?;
    let machine = spec
        .machine
        .as_deref()
        .map(crate::machines::load)
        .transpose()?;
    root::enter(work, &spec)?;
    root::network(&spec)?;
    machine::show(&spec, machine.as_ref())?;
    root::share()?;
    services::run(work, &spec)
}
