//! nvidia-peermem: loaded, loadable, or why not.
//!
//! The module is a client of a call that only OFED's `ib_core` offers. It is built even where that call was not found, and
//! then refuses to load; built against another OFED it refuses too, and both say "Invalid argument"
//! (open-gpu-kernel-modules `nvidia-peermem.c`). What tells them apart are the checksums in the two files, long before
//! anybody unloads anything.

use std::fmt;

use crds::node::Finding;
use host::facts::install::modules::ModuleFile;
use topology::fact::Fact;

use super::{Reach, known};
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::modules::{ModuleName, ModuleState};

/// Modules that are a client of peer memory for GPUs: today's, and the one from before driver 470.
const CLIENTS: &[&str] = &["nvidia_peermem", "nv_peer_mem"];

/// nvidia-peermem on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peermem {
    /// It is loaded.
    Loaded,
    /// It was built against the RDMA driver that runs.
    Loadable,
    /// The RDMA driver that runs offers no peer memory.
    NotOffered,
    /// gpu-operator owns it, and has not loaded it.
    Owned,
    /// There is no such module for this kernel.
    NotInstalled,
    /// It was built without an OFED.
    BuiltWithout,
    /// It was built against another OFED.
    BuiltForOther,
    /// Something could not be read.
    Unknown(String),
}

impl fmt::Display for Peermem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loaded => "nvidia-peermem is loaded",
            Self::Loadable => "nvidia-peermem was built against the RDMA driver that runs",
            Self::NotOffered => {
                "the RDMA driver that runs offers no peer memory (the kernel's own never does; MLNX_OFED and DOCA-OFED do)"
            }
            Self::Owned => {
                "gpu-operator owns the GPU driver and has not loaded nvidia-peermem: set driver.rdma.enabled in its ClusterPolicy"
            }
            Self::NotInstalled => "there is no nvidia-peermem for this kernel",
            Self::BuiltWithout => {
                "nvidia-peermem was built without an OFED: rebuild the GPU driver's modules now that it is there"
            }
            Self::BuiltForOther => {
                "nvidia-peermem was built against another OFED: rebuild the GPU driver's modules"
            }
            Self::Unknown(why) => return write!(f, "whether nvidia-peermem fits is unknown: {why}"),
        })
    }
}

/// A module that is loaded needs no proof that it could be (the driver pod of gpu-operator may have no module files at
/// all after a restart).
pub(super) fn peermem(state: &HostState) -> Peermem {
    if CLIENTS.iter().any(|name| is_live(state, name)) {
        return Peermem::Loaded;
    }
    if let Fact::Unreadable(why) = &state.modules {
        return Peermem::Unknown(why.clone());
    }
    let facts = &state.facts;
    match known(
        &facts.peer_memory_symbol.fact,
        "the kernel's list of symbols",
    ) {
        Ok(true) => {}
        Ok(false) => return Peermem::NotOffered,
        Err(why) => return Peermem::Unknown(why),
    }
    if facts.install.gpu.owned_by_operator() {
        return Peermem::Owned;
    }
    fits(state).unwrap_or_else(Peermem::Unknown)
}

fn is_live(state: &HostState, name: &str) -> bool {
    let loaded = state.modules.known();
    let name = ModuleName::new(name).ok();
    name.is_some_and(|name| {
        loaded.is_some_and(|loaded| loaded.get(&name) == Some(&ModuleState::Live))
    })
}

fn file<'a>(state: &'a HostState, name: &str) -> Result<Option<&'a ModuleFile>, String> {
    let files = &state.facts.install.modules;
    known(&files.fact, &files.source).map(|files| files.get(name))
}

/// Whether the file of nvidia-peermem fits the `ib_core` that runs.
fn fits(state: &HostState) -> Result<Peermem, String> {
    let core = file(state, "ib_core")?;
    if core.is_some_and(|core| core.is_loaded == Fact::Known(false)) {
        return Err(
            "the ib_core that runs is not the one on disk; activate the driver first".to_owned(),
        );
    }
    files_fit(state)
}

/// Whether the files of nvidia-peermem and `ib_core` on disk fit each other, whatever is loaded.
pub(super) fn files_fit(state: &HostState) -> Result<Peermem, String> {
    let Some(peermem) = file(state, "nvidia_peermem")? else {
        return Ok(Peermem::NotInstalled);
    };
    let core = file(state, "ib_core")?.ok_or("there is no file of ib_core")?;
    compare(peermem, core)
}

fn compare(peermem: &ModuleFile, core: &ModuleFile) -> Result<Peermem, String> {
    let client = known(&peermem.info, &peermem.path)?;
    let server = known(&core.info, &core.path)?;
    let offered = match &server.peer_memory_export {
        Fact::Known(checksum) => checksum,
        Fact::Absent => return Ok(Peermem::BuiltForOther),
        Fact::Unreadable(why) => return Err(why.clone()),
    };
    match &client.peer_memory_import {
        Fact::Known(checksum) if checksum == offered => Ok(Peermem::Loadable),
        Fact::Known(_) => Ok(Peermem::BuiltForOther),
        Fact::Absent => Ok(Peermem::BuiltWithout),
        Fact::Unreadable(why) => Err(why.clone()),
    }
}

/// What a changed OFED does to the module on disk, loaded or not: an unload, a restart or a reboot will not load it again.
pub(super) fn stale(state: &HostState, peermem: &Peermem) -> Vec<Finding> {
    let (Ok(Some(client)), Ok(Some(core))) =
        (file(state, "nvidia_peermem"), file(state, "ib_core"))
    else {
        return Vec::new();
    };
    // An `ib_core` without peer memory makes nothing stale: DMA-BUF is the way there.
    let offers = core
        .info
        .known()
        .is_some_and(|info| info.peer_memory_export.known().is_some());
    let rebuild = matches!(
        compare(client, core),
        Ok(Peermem::BuiltForOther | Peermem::BuiltWithout)
    );
    if !offers || !rebuild {
        return Vec::new();
    }
    let (id, now) = match peermem {
        Peermem::Loaded => (
            FindingId::GpuModulesStale,
            "it is loaded and works until it is unloaded once",
        ),
        _ => (FindingId::PeermemBuiltAgainstOther, "it cannot be loaded"),
    };
    let owner = if state.facts.install.gpu.owned_by_operator() {
        "gpu-operator owns it: delete its driver pod on this node, so that it builds anew (driver upgrade order: network driver, GPU driver, nvidia-peermem)"
    } else {
        "rebuild the GPU driver's modules (`dkms install --force nvidia/VERSION`), before anything unloads it"
    };
    let message = format!(
        "{} was not built against {}: {now}; {owner}",
        client.path, core.path
    );
    vec![id.about("nvidia_peermem", message)]
}

/// What is worth knowing where another way was found or none.
pub(super) fn remarks(peermem: &Peermem, reach: &Reach) -> Vec<Finding> {
    match peermem {
        Peermem::NotOffered => {
            let message = "the running ib_core offers no peer memory, so nvidia-peermem cannot work; DMA-BUF is the only way";
            vec![FindingId::PeerMemoryApiAbsent.about("ib_core", message)]
        }
        Peermem::Owned if !matches!(reach, Reach::Way(_)) => {
            vec![FindingId::GpuOperatorOwnsDriver.about("nvidia_peermem", peermem.to_string())]
        }
        _ => Vec::new(),
    }
}
