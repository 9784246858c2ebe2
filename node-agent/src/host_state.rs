//! The host's state as the planner sees it: all facts, and the few of them that must be understood first. Pure data.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use host::facts::Facts;
use topology::fact::Fact;

use crate::compat::matrix::Matrix;
use crate::job::Seen;
use crate::modules::{self, ModuleName, Modules};

/// What was read from the host for the planner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostState {
    /// Boot id of the running kernel.
    pub boot_id: String,
    /// Loaded modules.
    pub modules: Fact<Modules>,
    /// Modules that are part of the kernel itself (`modules.builtin`).
    pub built_in: BTreeSet<ModuleName>,
    /// Addresses of the Node object, as far as they are known.
    pub node_addresses: BTreeSet<IpAddr>,
    /// Everything, each fact with its source.
    pub facts: Facts,
    /// What the package manager does for the agent, or has done.
    pub job: Option<Seen>,
    /// What goes with what.
    pub compat: Arc<Matrix>,
}

/// Without a boot id nothing could be told from another boot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read the host's boot id: {0}; is the host's root mounted where --root says?")]
pub struct NoBootId(String);

impl TryFrom<Facts> for HostState {
    type Error = NoBootId;

    fn try_from(facts: Facts) -> Result<Self, NoBootId> {
        let boot_id = match &facts.boot_id.fact {
            Fact::Known(id) => id.clone(),
            Fact::Absent => return Err(NoBootId(format!("{} is absent", facts.boot_id.source))),
            Fact::Unreadable(why) => return Err(NoBootId(why.clone())),
        };
        let built_in = facts.built_in.fact.known().into_iter().flatten();
        Ok(Self {
            boot_id,
            modules: modules::from_facts(facts.modules.fact.clone()),
            built_in: built_in
                .filter_map(|name| ModuleName::new(name).ok())
                .collect(),
            node_addresses: BTreeSet::new(),
            facts,
            job: None,
            compat: Arc::default(),
        })
    }
}

impl HostState {
    /// Whether `name` is usable; `None` where that is unknown.
    #[must_use]
    pub fn has_module(&self, name: &ModuleName) -> Option<bool> {
        if self.built_in.contains(name) {
            return Some(true);
        }
        match &self.modules {
            Fact::Known(modules) => Some(modules.contains_key(name)),
            Fact::Absent | Fact::Unreadable(_) => None,
        }
    }

    /// Whether this is a virtual machine: its processor or its product's name says so. An Arm processor does not.
    #[must_use]
    pub fn guest(&self) -> Fact<bool> {
        let names = [&self.facts.product, &self.facts.vendor];
        let says_so = ["QEMU", "KVM", "Virtual", "VMware", "Xen"];
        let mut names = names.into_iter().filter_map(|name| name.fact.known());
        if names.any(|name| says_so.iter().any(|word| name.contains(word))) {
            return Fact::Known(true);
        }
        self.facts.tuning.hypervisor.clone()
    }

    /// Whether the running RDMA driver is an out-of-tree one (`MLNX_OFED` or DOCA-OFED).
    #[must_use]
    pub fn ofed(&self) -> bool {
        self.facts.ofed_version.fact.known().is_some()
    }
}
