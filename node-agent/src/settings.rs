//! Where everything is on this node: values from the command line, fixed for the life of the process. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use host::root::Root;

use crate::compat::matrix::{self, Matrix};
use crate::modules::{DEADLINE, ModuleTool};

/// Directory of the node file and the pair descriptions, gone after a reboot.
pub const RUN_DIR: &str = "/run/gpurdma";
/// The node file.
pub const NODE_FILE: &str = "/run/gpurdma/node.json";
/// Directory of what outlives a reboot.
pub const STATE_DIR: &str = "/var/lib/gpurdma";
/// The persisted partition.
pub const PARTITION_FILE: &str = "/var/lib/gpurdma/partition.json";
/// The journal.
pub const JOURNAL_FILE: &str = "/var/lib/gpurdma/journal.json";
/// The attempt budgets.
pub const ATTEMPTS_FILE: &str = "/var/lib/gpurdma/attempts.json";
/// The grant that was taken in.
pub const MAINTENANCE_FILE: &str = "/var/lib/gpurdma/maintenance.json";
/// The lock that is held while actions run.
pub const LOCK_FILE: &str = "/run/gpurdma/agent.lock";
/// A change that is under way and could cut the node off.
pub const GUARD_FILE: &str = "/var/lib/gpurdma/guard.json";
/// The configuration of openibd.
pub const OPENIB_CONF: &str = "/etc/infiniband/openib.conf";

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host's root.
    pub root: Root,
    /// The kubelet's directory, below the root.
    pub kubelet_root: String,
    /// Directory of CDI specifications that the agent writes to, below the root.
    pub cdi_dir: String,
    /// PCI vendors whose accelerators count as GPUs.
    pub gpu_vendors: BTreeSet<u16>,
    /// The `chroot` program, by which the host's own tools are run.
    pub chroot: PathBuf,
    /// What goes with what.
    pub compat: Arc<Matrix>,
    /// Addresses of the Node object, as far as the pod was told.
    pub node_addresses: BTreeSet<IpAddr>,
    /// The API server that the pod was given: host and port.
    pub api_server: Option<(String, u16)>,
}

impl Settings {
    /// The usual places below `root`.
    #[must_use]
    pub fn new(root: Root) -> Self {
        Self {
            root,
            kubelet_root: "/var/lib/kubelet".to_owned(),
            cdi_dir: "/var/run/cdi".to_owned(),
            gpu_vendors: [0x10de].into(),
            chroot: "chroot".into(),
            compat: matrix::built_in(),
            node_addresses: BTreeSet::new(),
            api_server: None,
        }
    }

    /// The agent's CDI specification.
    #[must_use]
    pub fn cdi_file(&self) -> String {
        format!(
            "{}/{}",
            self.cdi_dir.trim_end_matches('/'),
            crate::cdi::FILE
        )
    }

    /// Directories of CDI specifications: those of every runtime, and the one that the agent writes to.
    #[must_use]
    pub fn cdi_dirs(&self) -> BTreeSet<&str> {
        ["/etc/cdi", "/var/run/cdi", &self.cdi_dir].into()
    }

    /// The kubelet's directory of device plugins.
    #[must_use]
    pub fn device_plugins(&self) -> String {
        format!("{}/device-plugins", self.kubelet_root.trim_end_matches('/'))
    }

    /// The kubelet's podresources socket.
    #[must_use]
    pub fn kubelet_socket(&self) -> String {
        format!(
            "{}/pod-resources/kubelet.sock",
            self.kubelet_root.trim_end_matches('/')
        )
    }

    /// What loads and unloads the host's modules.
    #[must_use]
    pub fn module_tool(&self) -> ModuleTool {
        ModuleTool {
            root: self.root.path().to_owned(),
            chroot: self.chroot.clone(),
            deadline: DEADLINE,
        }
    }
}
