//! The files that `modprobe` would load, what they say of themselves, and whether that is what is loaded.
//!
//! `depmod` has resolved its search order (`updates`, `extra`, `weak-updates`, then the kernel's own) in `modules.dep`, so
//! the line there is the file. What the host does not have may be in the GPU driver's container. A compressed file is
//! unpacked where this program knows how.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::elf;
use super::gpu::CONTAINER_ROOT;
use crate::facts::{Sourced, kernel};
use crate::root::{Root, last_name};

/// Modules of RDMA and GPUs that a change of driver touches.
pub const NAMES: &[&str] = &[
    "gdrdrv",
    "ib_core",
    "ib_ipoib",
    "ib_umad",
    "ib_uverbs",
    "mlx5_core",
    "mlx5_ib",
    "mlx_compat",
    "nv_peer_mem",
    "nvidia",
    "nvidia_fs",
    "nvidia_peermem",
    "nvidia_uvm",
    "rdma_cm",
    "rdma_ucm",
];

/// A file that `modprobe` would load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModuleFile {
    /// Path below the root.
    pub path: String,
    /// When it was written, in seconds since 1970.
    pub modified: Fact<i64>,
    /// What it says of itself.
    pub info: Fact<ModuleInfo>,
    /// Whether what is loaded comes from the same sources; `Absent` where the module is not loaded.
    pub is_loaded: Fact<bool>,
}

/// What a module file says of itself (`modinfo(8)`, kernel `include/linux/module.h`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModuleInfo {
    /// `MODULE_VERSION`.
    pub version: Fact<String>,
    /// Checksum of its sources.
    pub source_version: Fact<String>,
    /// Kernel and options that it was built for.
    pub vermagic: Fact<String>,
    /// Checksum of the peer-memory call that it offers; `Absent` where it offers none.
    pub peer_memory_export: Fact<u32>,
    /// Checksum of the peer-memory call that it was built against; `Absent` where it was built without.
    pub peer_memory_import: Fact<u32>,
}

pub(super) fn files(
    root: &Root,
    release: &Fact<String>,
    loaded: &Fact<Vec<kernel::Module>>,
    before: Option<&BTreeMap<String, ModuleFile>>,
) -> Sourced<BTreeMap<String, ModuleFile>> {
    let Fact::Known(release) = release else {
        let why = "the kernel's release is not known".to_owned();
        return Sourced::new("/lib/modules", Fact::Unreadable(why));
    };
    let directory = format!("/lib/modules/{release}");
    let index = format!("{directory}/modules.dep");
    let container = format!("{CONTAINER_ROOT}{directory}");
    let others = paths(root, &format!("{container}/modules.dep"), &container);
    let found = paths(root, &index, &directory).map(|mut paths| {
        for (name, path) in others.known().into_iter().flatten() {
            paths.entry(name.clone()).or_insert_with(|| path.clone());
        }
        let file = |(name, path): (String, String)| {
            let before = before.and_then(|before| before.get(&name));
            let mut file = file(root, path, before);
            file.is_loaded = is_loaded(&name, &file.info, loaded);
            (name, file)
        };
        paths.into_iter().map(file).collect()
    });
    Sourced::new(index, found)
}

/// Paths in `modules.dep` are relative to its directory, as a rule.
fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    }
}

/// `kernel/drivers/…/mlx5_core.ko.zst: kernel/…`; the first line of a name counts.
fn paths(root: &Root, index: &str, directory: &str) -> Fact<BTreeMap<String, String>> {
    let wanted: BTreeSet<&str> = NAMES.iter().copied().collect();
    let mut paths = BTreeMap::new();
    let read = root.each_line(index, |line| {
        let Some((path, _)) = line.split_once(':') else {
            return;
        };
        let Some((name, _)) = last_name(path).split_once(".ko") else {
            return;
        };
        let name = name.replace('-', "_");
        if wanted.contains(name.as_str()) {
            paths
                .entry(name)
                .or_insert_with(|| absolute(directory, path));
        }
    });
    crate::root::fact(read).map(|()| paths)
}

fn file(root: &Root, path: String, before: Option<&ModuleFile>) -> ModuleFile {
    let modified = root.modified(&path);
    let same = |before: &&ModuleFile| {
        before.path == path && before.modified == modified && modified.known().is_some()
    };
    let info = match before.filter(same) {
        Some(before) => before.info.clone(),
        None => elf::info(root, &path),
    };
    ModuleFile {
        path,
        modified,
        info,
        is_loaded: Fact::Absent,
    }
}

/// By the checksum of the sources, which both have or neither.
fn is_loaded(
    name: &str,
    info: &Fact<ModuleInfo>,
    loaded: &Fact<Vec<kernel::Module>>,
) -> Fact<bool> {
    let loaded = match loaded {
        Fact::Known(loaded) => loaded.iter().find(|module| module.name == name),
        Fact::Absent => return Fact::Unreadable("the list of modules is not there".to_owned()),
        Fact::Unreadable(why) => return Fact::Unreadable(why.clone()),
    };
    let Some(loaded) = loaded else {
        return Fact::Absent;
    };
    match (info, &loaded.source_version) {
        (Fact::Known(info), Fact::Known(running)) => match &info.source_version {
            Fact::Known(file) => Fact::Known(file == running),
            _ => Fact::Unreadable(format!("the file of {name} has no srcversion")),
        },
        (Fact::Unreadable(why), _) | (_, Fact::Unreadable(why)) => Fact::Unreadable(why.clone()),
        _ => Fact::Unreadable(format!("/sys/module/{name} has no srcversion")),
    }
}
