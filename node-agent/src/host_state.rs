//! The part of the host's state that the planner decides on. Pure data; [`crate::gather`] fills it.

use std::collections::BTreeSet;

use serde::Serialize;
use topology::fact::Fact;

use crate::modules::{ModuleName, Modules};

/// What was read from the host for the planner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostState {
    /// Boot id of the running kernel.
    pub boot_id: String,
    /// `/proc/modules`.
    pub modules: Fact<Modules>,
    /// Modules that are part of the kernel itself (`modules.builtin`, `/sys/module`).
    pub built_in: BTreeSet<ModuleName>,
    /// Text of `/etc/infiniband/openib.conf`.
    pub openib_conf: Fact<String>,
    /// Whether `/etc/infiniband` is there.
    pub infiniband_dir: bool,
    /// Whether `/etc/init.d/openibd` is there: who reads openib.conf.
    pub openibd: bool,
    /// systemd's invocation id of `openibd.service`; a restart gives another.
    pub openibd_invocation: Option<String>,
    /// Whether the running RDMA driver is an out-of-tree one (`MLNX_OFED` or DOCA-OFED).
    pub ofed: bool,
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
}
