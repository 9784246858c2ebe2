//! What the cluster asks of this node, checked: [`Desired::validate`] is the one place where a configuration can be
//! wrong. Pure; called by [`crate::run`] and the command line with a `GpuRdmaNode` or a bare `NodeConfig`.

use std::collections::{BTreeMap, BTreeSet};

use crds::GpuRdmaNode;
use crds::cluster::{DriverSource, Mode};
use crds::fabric::Fabric;
use crds::node::{Finding, GpuPlugin, Maintenance, NodeConfig};
use crds::texts::{is_resource_name, wrong_texts};
use host::facts::network::Depth;

use crate::action::Change;
use crate::findings::FindingId;
use crate::modules::ModuleName;
use crate::openib_conf::is_value;
use crate::packages::repository::Repository;
use crate::packages::{DEFAULT_PACKAGE, PackageName, PackageVersion, Wish, Wishes};

/// Keys of openib.conf that may be set: those of openibd without its hooks, which name programs to run.
pub const OPENIB_KEYS: &[&str] = &[
    "IPATH_LOAD",
    "IPOIB_LOAD",
    "ISER_LOAD",
    "MLX4_EN_LOAD",
    "MLX4_LOAD",
    "MLX5_LOAD",
    "MTHCA_LOAD",
    "NODE_DESC",
    "NODE_DESC_TIME_BEFORE_UPDATE",
    "NODE_DESC_UPDATE_TIMEOUT",
    "ONBOOT",
    "POST_START_DELAY",
    "QIB_LOAD",
    "RDMA_CM_LOAD",
    "RDMA_UCM_LOAD",
    "RDS_LOAD",
    "RENICE_IB_MAD",
    "RUN_AFFINITY_TUNER",
    "RUN_MLNX_TUNE",
    "RUN_SYSCTL",
    "SDP_LOAD",
    "SET_IPOIB_CM",
    "SRPHA_ENABLE",
    "SRPT_LOAD",
    "SRP_DAEMON_ENABLE",
    "SRP_LOAD",
    "UCM_LOAD",
    "UMAD_DEV_NA",
    "UMAD_DEV_RW",
    "UMAD_LOAD",
    "UVERBS_LOAD",
];

/// What the cluster asks of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// How far the agent may go.
    pub mode: Mode,
    /// Whether new actions are stopped.
    pub paused: bool,
    /// `metadata.uid` of the Node.
    pub node_uid: String,
    /// `metadata.generation` of the `GpuRdmaNode`.
    pub generation: i64,
    /// The operator's hash of what is installed.
    pub install_hash: String,
    /// Whether what was changed here is to be taken back.
    pub restore: bool,
    /// What the operator has done about another device plugin.
    pub gpu_plugin: GpuPlugin,
    /// What the operator granted.
    pub grant: Option<Maintenance>,
    /// Value of the annotation that resets attempt budgets.
    pub reset_attempts: Option<String>,
    /// The configuration as it was written.
    pub config: NodeConfig,
    /// Modules to have loaded.
    pub modules: BTreeSet<ModuleName>,
    /// Keys to set in openib.conf.
    pub openib_conf: BTreeMap<String, String>,
    /// Packages to have installed, for source `HostPackages`.
    pub packages: Option<WantedPackages>,
    /// What is wrong with the configuration; a wrong field is left out above.
    pub findings: Vec<Finding>,
}

/// Packages to have installed, and where they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedPackages {
    /// What is wished, by name.
    pub wishes: Wishes,
    /// Signed repositories.
    pub repositories: Vec<Repository>,
}

impl Desired {
    /// What a `GpuRdmaNode` asks.
    #[must_use]
    pub fn of_node(node: &GpuRdmaNode) -> Self {
        let annotations = node.metadata.annotations.as_ref();
        Self {
            mode: node.spec.mode,
            paused: node.spec.paused,
            node_uid: node.spec.node_uid.clone(),
            generation: node.metadata.generation.unwrap_or_default(),
            install_hash: node.spec.install_hash.clone(),
            restore: node.spec.restore,
            gpu_plugin: node.spec.gpu_plugin,
            grant: node.spec.maintenance.clone(),
            reset_attempts: annotations
                .and_then(|a| a.get(crds::names::RESET_ATTEMPTS))
                .cloned(),
            ..Self::validate(node.spec.config.clone())
        }
    }

    /// What a bare configuration asks, as if a cluster in mode Enforce had it.
    pub fn of_config(config: NodeConfig) -> Result<Self, serde_json::Error> {
        let install_hash = crds::hash::install_hash(&config)?;
        Ok(Self {
            mode: Mode::Enforce,
            install_hash,
            ..Self::validate(config)
        })
    }

    /// Whether anything is to be set on network interfaces or ports.
    #[must_use]
    pub fn sets_network(&self) -> bool {
        let Fabric {
            rdma_mtu,
            infiniband,
            roce,
            traffic_classes,
            ..
        } = &self.config.fabric;
        let ports = rdma_mtu.is_some() || infiniband.is_some() || roce.is_some();
        ports || !traffic_classes.is_empty() || !self.config.addresses.is_empty()
    }

    /// Whether anything is asked of network interfaces or ports: to be set, or, of the ranges of rails, which addresses
    /// are in use there.
    #[must_use]
    pub fn asks_of_network(&self) -> bool {
        self.sets_network() || !self.config.fabric.addresses.is_empty()
    }

    /// How much of the network has to be read for that.
    #[must_use]
    pub fn depth(&self) -> Depth {
        if self.asks_of_network() {
            Depth::Full
        } else {
            Depth::Reach
        }
    }

    /// The changes that would be needed on a host that has nothing of it yet.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        let modules = self.modules.iter().cloned().map(Change::LoadModule);
        let set = |(key, value): (&String, &String)| Change::SetOpenibConf {
            key: key.clone(),
            value: Some(value.clone()),
        };
        modules.chain(self.openib_conf.iter().map(set)).collect()
    }

    fn validate(mut config: NodeConfig) -> Self {
        let wrong = wrong_texts(&config);
        let about = |wrong: &crds::texts::WrongText| {
            FindingId::InvalidSpec.about(wrong.field.clone(), wrong.to_string())
        };
        let mut findings: Vec<Finding> = wrong.iter().map(about).collect();
        let resources = &mut config.device_plugin.resources;
        resources.retain(|resource| is_resource_name(&resource.name));
        Self {
            modules: modules(&config, &mut findings),
            openib_conf: openib_conf(&config, &mut findings),
            packages: packages(&config, &mut findings),
            findings,
            config,
            ..Self::default()
        }
    }
}

fn modules(config: &NodeConfig, findings: &mut Vec<Finding>) -> BTreeSet<ModuleName> {
    let mut names = BTreeSet::new();
    for (index, text) in config.driver.modules.iter().enumerate() {
        match ModuleName::new(text) {
            Ok(name) => drop(names.insert(name)),
            Err(error) => {
                let field = format!("driver.modules[{index}]");
                findings.push(FindingId::InvalidSpec.about(field, error.to_string()));
            }
        }
    }
    names
}

/// `None` where packages are not asked for, or something is wrong with what is asked: half of it is not installed.
fn packages(config: &NodeConfig, findings: &mut Vec<Finding>) -> Option<WantedPackages> {
    let asked = config.driver.host_packages.as_ref()?;
    if config.driver.source != DriverSource::HostPackages {
        return None;
    }
    let before = findings.len();
    let mut wanted = WantedPackages::default();
    let mut wrong = |field: String, error: &dyn std::error::Error| {
        let field = format!("driver.hostPackages.{field}");
        findings.push(FindingId::InvalidSpec.about(field, error.to_string()));
    };
    let version = PackageVersion::new(&asked.version);
    if let Err(error) = &version {
        wrong("version".to_owned(), error);
    }
    let default = [DEFAULT_PACKAGE.to_owned()];
    let names = if asked.packages.is_empty() {
        default.as_slice()
    } else {
        asked.packages.as_slice()
    };
    for (index, name) in names.iter().enumerate() {
        match (PackageName::new(name), &version) {
            (Ok(name), Ok(version)) => {
                drop(wanted.wishes.insert(name, Wish::Version(version.clone())));
            }
            (Ok(_), Err(_)) => {}
            (Err(error), _) => wrong(format!("packages[{index}]"), &error),
        }
    }
    for (index, repository) in asked.repositories.iter().enumerate() {
        match Repository::new(repository) {
            Ok(repository) => wanted.repositories.push(repository),
            Err(error) => wrong(format!("repositories[{index}]"), &error),
        }
    }
    (findings.len() == before).then_some(wanted)
}

fn openib_conf(config: &NodeConfig, findings: &mut Vec<Finding>) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    for (key, value) in &config.driver.openib_conf {
        let field = format!("driver.openibConf.{key}");
        if !OPENIB_KEYS.contains(&key.as_str()) {
            let message = format!("{key} is not among the keys that may be set; set it by hand");
            findings.push(FindingId::InvalidSpec.about(field, message));
        } else if is_value(value) {
            keys.insert(key.clone(), value.clone());
        } else {
            let message = format!(
                "`{value}`: write letters, digits and _ . , : / + - only, not beginning with -"
            );
            findings.push(FindingId::InvalidSpec.about(field, message));
        }
    }
    keys
}

#[cfg(test)]
mod tests;
