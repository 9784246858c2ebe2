//! Everything that one cycle read. Pure data; [`crate::gather`] fills it, [`crate::decide`] decides on it.

use std::collections::BTreeSet;

use crds::node::Finding;
use host::facts::Facts;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use topology::machine::Machine;
use topology::node_file::NodeFile;
use topology::partition::Partition;

use crate::cdi::Spec;
use crate::evidence::Evidence;
use crate::foreign::ForeignMemory;
use crate::host_state::HostState;
use crate::injection::Injection;
use crate::own_nics::OwnNics;
use crate::planner::Memory;
use crate::rates::Rates;

/// Everything that one cycle read.
#[derive(Clone, Debug)]
pub struct Observed {
    /// GPUs, NICs and what connects them.
    pub machine: Machine,
    /// Operating system and drivers, for the summary.
    pub platform: Platform,
    /// What the planner decides on.
    pub state: HostState,
    /// What the kubelet says, and what that proves.
    pub kubelet: Evidence,
    /// What puts devices into containers.
    pub injection: Injection,
    /// What the agent wrote before.
    pub before: Before,
    /// What could not be read.
    pub findings: Vec<Finding>,
}

/// Operating system and drivers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Platform {
    /// `debian 12`.
    pub os: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Version of the GPU driver.
    pub gpu_driver: Option<String>,
}

impl From<&Facts> for Platform {
    fn from(facts: &Facts) -> Self {
        let os = facts.os.fact.known().map(|os| match &os.version_id {
            Some(version) => format!("{} {version}", os.id),
            None => os.id.clone(),
        });
        let driver = facts.gpu_driver.fact.known();
        Self {
            os,
            kernel: facts.kernel_release.fact.known().cloned(),
            gpu_driver: driver.map(|driver| driver.version.clone()),
        }
    }
}

/// What the agent wrote before.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// The node file, if it is of this boot.
    pub node_file: Option<NodeFile>,
    /// When the node file was written.
    pub node_file_written: Option<Timestamp>,
    /// The partition that holds.
    pub kept: Option<Kept>,
    /// Our CDI specification.
    pub cdi: Option<Spec>,
    /// Names in the directory of pair descriptions.
    pub pair_files: BTreeSet<String>,
    /// What was changed and tried.
    pub memory: Memory,
    /// Files of the agent's own that are there and could not be used.
    pub unusable: Unusable,
}

/// Files of the agent's own that are there and could not be used, below the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Read, and no more what the agent wrote: put aside before a new one is written.
    pub broken: BTreeSet<String>,
    /// Not read: what is in them may be good, so they are not written over.
    pub unreadable: BTreeSet<String>,
}

impl Unusable {
    /// Whether there is such a file at `path`.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.broken.contains(path) || self.unreadable.contains(path)
    }
}

/// The content of `partition.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Which device belongs to which resource.
    pub partition: Partition,
    /// Every resource name that our plugin has had: the kubelet remembers old ones for a while, and they are not foreign.
    pub names: BTreeSet<String>,
    /// Other advertisers of our GPUs.
    #[serde(default, skip_serializing_if = "ForeignMemory::is_empty")]
    pub foreign: ForeignMemory,
    /// NICs that were seen to be the node's own.
    #[serde(default, skip_serializing_if = "OwnNics::is_empty")]
    pub own: OwnNics,
    /// The highest rate of each NIC.
    #[serde(default, skip_serializing_if = "Rates::is_empty")]
    pub rates: Rates,
}
