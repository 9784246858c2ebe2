//! Changes of the RDMA driver and of what makes GPU memory reachable for it. Pure.

use crds::node::Cost;
use host::facts::install::packages::Manager;
use serde::{Deserialize, Serialize};

use super::{Explain, Lasts};
use crate::packages::repository::Repository;
use crate::packages::{Wishes, shown};

/// A change of the RDMA driver and of what makes GPU memory reachable for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DriverChange {
    /// Describes a signed repository to the package manager, or takes the description away.
    SetRepository {
        /// The package manager.
        manager: Manager,
        /// The repository.
        repository: Repository,
        /// Whether it is to be there.
        there: bool,
    },
    /// Installs, upgrades or removes packages.
    SetPackages {
        /// The package manager.
        manager: Manager,
        /// What is wished, by name.
        wishes: Wishes,
    },
    /// Puts the installed modules in the place of the loaded ones.
    ActivateDriver {
        /// How.
        way: Activation,
        /// Version of the modules on disk, where they say one.
        version: String,
    },
}

/// How installed modules come into effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Activation {
    /// `openibd` unloads and loads the whole RDMA stack.
    Openibd,
    /// The next boot loads them.
    Reboot,
}

impl Explain for DriverChange {
    fn kind(&self) -> &'static str {
        match self {
            Self::SetRepository { .. } => "SetRepository",
            Self::SetPackages { .. } => "SetPackages",
            Self::ActivateDriver { .. } => "ActivateDriver",
        }
    }

    /// Packages are one place: what is wished next stands in for what was wished before.
    fn target(&self) -> String {
        match self {
            Self::SetRepository { repository, .. } => repository.id(),
            Self::SetPackages { .. } => "packages".to_owned(),
            Self::ActivateDriver { .. } => "rdma-driver".to_owned(),
        }
    }

    fn desired(&self) -> String {
        match self {
            Self::SetRepository {
                repository, there, ..
            } => {
                if *there {
                    repository.url.clone()
                } else {
                    "(not described)".to_owned()
                }
            }
            Self::SetPackages { wishes, .. } if wishes.is_empty() => {
                "(left as they are)".to_owned()
            }
            Self::SetPackages { wishes, .. } => shown(wishes),
            Self::ActivateDriver { version, .. } => version.clone(),
        }
    }

    /// A file for the package manager touches nobody. A package's scripts may restart the RDMA stack.
    fn cost(&self) -> Cost {
        match self {
            Self::SetRepository { .. } => Cost::None,
            Self::SetPackages { .. }
            | Self::ActivateDriver {
                way: Activation::Openibd,
                ..
            } => Cost::Traffic,
            Self::ActivateDriver {
                way: Activation::Reboot,
                ..
            } => Cost::Reboot,
        }
    }

    fn lasts(&self) -> Lasts {
        match self {
            Self::SetRepository { .. } | Self::SetPackages { .. } => Lasts::Always,
            Self::ActivateDriver { .. } => Lasts::Boot,
        }
    }

    fn effect(&self) -> String {
        match self {
            Self::SetRepository {
                manager,
                repository,
                there,
            } => {
                let files: Vec<String> = repository
                    .files(*manager)
                    .into_iter()
                    .map(|file| file.path)
                    .collect();
                let verb = if *there { "written" } else { "removed" };
                format!("{} {verb}", files.join(" and "))
            }
            Self::SetPackages { wishes, .. } => format!(
                "{} by the host's package manager; modules that are loaded stay until the driver is activated",
                shown(wishes)
            ),
            Self::ActivateDriver { way, .. } => match way {
                Activation::Openibd => {
                    "openibd unloads and loads the RDMA stack; every RDMA connection of this node breaks".to_owned()
                }
                Activation::Reboot => "the next boot loads the installed modules".to_owned(),
            },
        }
    }

    fn verification(&self) -> String {
        match self {
            Self::SetRepository { .. } => "the files are read back".to_owned(),
            Self::SetPackages { .. } => "the package database shows them".to_owned(),
            Self::ActivateDriver { .. } => {
                "srcversion of the loaded modules is that of the files".to_owned()
            }
        }
    }
}
