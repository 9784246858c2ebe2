//! Machine files as nodes show them: `/sys` and `/proc` trees for the machines in `topology/tests/machines`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use host::fixture::{self, FixtureModule, FixtureOptions};
use host::root::Root;
use topology::file::{self, MachineFile};
use topology::machine::Machine;
use topology::nccl_xml;

use crate::paths;

/// Modules that a node with the inbox RDMA stack and a GPU driver has loaded.
const MODULES: &[&str] = &[
    "ib_core",
    "ib_uverbs",
    "mlx5_core",
    "mlx5_ib",
    "rdma_cm",
    "rdma_ucm",
    "nvidia",
];

/// A machine that a node shows.
pub struct Shown {
    file: MachineFile,
    topology_file: Option<String>,
}

/// Loads a machine file by its name, or by its path.
pub fn load(name: &str) -> Result<Shown> {
    let path = path(name);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("read the machine file {}", path.display()))?;
    let file = file::parse(&text).with_context(|| format!("understand {}", path.display()))?;
    let topology_file = file.topology_file.as_ref().map(|functions| {
        let functions = functions.clone();
        nccl_xml::write(&Machine {
            functions,
            ..file.machine.clone()
        })
    });
    Ok(Shown {
        file,
        topology_file,
    })
}

fn path(name: &str) -> PathBuf {
    let given = Path::new(name);
    if given.exists() {
        given.to_owned()
    } else {
        paths::repository().join(format!("topology/tests/machines/{name}.yaml"))
    }
}

impl Shown {
    /// The machine as a node of that name shows it: with the names, identities and link states that no description has.
    pub fn seen(&self, node: &str) -> Result<Machine> {
        let described = &self.file.machine;
        let seen = fixture::as_seen(described, &options(node))
            .with_context(|| format!("show {}", self.file.name))?;
        Ok(Machine {
            stated: described.stated.clone(),
            ..seen
        })
    }

    /// What the machine is, in a line.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// Number of GPUs.
    #[must_use]
    pub fn gpus(&self) -> usize {
        self.file.machine.gpus.len()
    }

    /// Number of RDMA devices.
    #[must_use]
    pub fn nics(&self) -> usize {
        self.file.machine.nics.len()
    }

    /// The NCCL topology file that such a machine ships, where it does.
    #[must_use]
    pub fn topology_file(&self) -> Option<&str> {
        self.topology_file.as_deref()
    }

    /// Writes the `/sys` and `/proc` that a node of that name shows below a folder.
    pub fn write(&self, node: &str, tree: &Path) -> Result<()> {
        show(&self.file.machine, node, tree).with_context(|| format!("show {}", self.file.name))
    }
}

/// Writes the `/sys` and `/proc` of a machine, as a node of that name shows it, below a folder.
pub fn show(machine: &Machine, node: &str, tree: &Path) -> Result<()> {
    std::fs::create_dir_all(tree).with_context(|| format!("create {}", tree.display()))?;
    let written = fixture::write(machine, &options(node), &Root::new(tree));
    written.map(drop).context("write a machine")
}

/// Identities follow from the node's name: no two nodes have a GPU of one UUID.
fn options(node: &str) -> FixtureOptions {
    let module = |&name: &&str| FixtureModule {
        name: name.to_owned(),
        holders: Vec::new(),
        version: None,
        source_version: None,
    };
    FixtureOptions {
        name: node.to_owned(),
        modules: MODULES.iter().map(module).collect(),
        ..FixtureOptions::default()
    }
}
