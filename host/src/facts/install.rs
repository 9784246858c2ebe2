//! What is installed for RDMA and GPUs, and what the next boot will run: kernels, module files, DKMS builds, packages,
//! and who owns the GPU driver. "Installed" and "loaded" are two facts; both are here, with what tells them apart.
//!
//! Reads only, each file up to a limit. A package database that only its own tool can read is `Unreadable` and says so:
//! the agent asks that tool. What costs time (module files, the package database) is taken from the last reading where
//! the files have not changed.

pub mod boot;
pub mod dkms;
mod elf;
pub mod gpu;
pub mod modules;
pub mod packages;
mod unpack;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::{Sourced, kernel};
use crate::root::Root;

/// What is installed, and what the next boot will run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Install {
    /// The running kernel and the one that boots next.
    pub boot: boot::Boot,
    /// Modules that DKMS builds.
    pub dkms: Sourced<Vec<dkms::DkmsModule>>,
    /// The files that `modprobe` would load for the running kernel, by module.
    pub modules: Sourced<BTreeMap<String, modules::ModuleFile>>,
    /// The package manager and what it has installed.
    pub packages: packages::Packages,
    /// Where the GPU driver lives, who owns it and how it is set.
    pub gpu: gpu::GpuInstall,
    /// Modules that the driver container's blacklist on the host keeps from loading by themselves.
    pub blacklisted: Sourced<Vec<String>>,
    /// Kernel that the build of out-of-tree modules takes RDMA's symbols from.
    pub ofed_default: Sourced<String>,
}

/// What the DOCA driver container leaves on the host while it runs (doca-driver-build).
const BLACKLIST: &str = "/etc/modprobe.d/blacklist-ofed-modules.conf";
/// What builds against OFED by default.
const OFED_DEFAULT: &str = "/usr/src/ofa_kernel/default";

/// What is installed below `root`.
#[must_use]
pub fn install(root: &Root) -> Install {
    install_since(root, None)
}

/// What is installed below `root`; module files and the package database are read again where they have changed since
/// `before`.
#[must_use]
pub fn install_since(root: &Root, before: Option<&Install>) -> Install {
    let release = kernel::release(root).fact;
    let loaded = kernel::modules(root).fact;
    let files = before.and_then(|before| before.modules.fact.known());
    Install {
        boot: boot::boot(root, &release),
        dkms: dkms::dkms(root),
        modules: modules::files(root, &release, &loaded, files),
        packages: packages::packages(root, before.map(|before| &before.packages)),
        gpu: gpu::gpu(root),
        blacklisted: Sourced::new(BLACKLIST, root.read(BLACKLIST).map(|text| blacklist(&text))),
        ofed_default: Sourced::new(OFED_DEFAULT, root.read_link_name(OFED_DEFAULT)),
    }
}

/// `blacklist mlx5_core`, one a line (`modprobe.d(5)`).
fn blacklist(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("blacklist")).then(|| words.next().map(str::to_owned))?
    };
    let mut names: Vec<String> = text.lines().filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// A fact that was known, or why it was not.
fn or_else<T>(first: Fact<T>, second: impl FnOnce() -> Fact<T>) -> Fact<T> {
    match first {
        Fact::Absent => second(),
        found => found,
    }
}

#[cfg(test)]
mod tests;
