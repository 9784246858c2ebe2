//! The running kernel: this boot's id, its release and its modules (`/proc/modules`, kernel `kernel/module/procfs.c`).

use serde::Serialize;
use topology::fact::Fact;

use super::Sourced;
use crate::parse::checked;
use crate::root::Root;

/// Identity of this boot.
pub(crate) const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Kernel release.
pub(crate) const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// Loaded modules.
pub(crate) const MODULES: &str = "/proc/modules";

/// One loaded kernel module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// Name, with underscores.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Reference count; `Absent` where the kernel cannot unload modules.
    pub references: Fact<u64>,
    /// Modules that use it, by name.
    pub holders: Vec<String>,
    /// `Live`, `Loading` or `Unloading`.
    pub state: String,
    /// `MODULE_VERSION`, where it has one.
    pub version: Fact<String>,
    /// Checksum of its sources, where it has one.
    pub source_version: Fact<String>,
}

/// Identity of this boot.
#[must_use]
pub fn boot_id(root: &Root) -> Sourced<String> {
    Sourced::new(BOOT_ID, root.read(BOOT_ID))
}

/// Kernel release, as `uname -r` prints it.
#[must_use]
pub fn release(root: &Root) -> Sourced<String> {
    Sourced::new(RELEASE, root.read(RELEASE))
}

/// Loaded modules, by name.
#[must_use]
pub fn modules(root: &Root) -> Sourced<Vec<Module>> {
    let modules = checked(root.read(MODULES), MODULES, "list of modules", |text| {
        let mut modules = text
            .lines()
            .map(|line| module(root, line))
            .collect::<Option<Vec<_>>>()?;
        modules.sort_by(|a, b| a.name.cmp(&b.name));
        Some(modules)
    });
    Sourced::new(MODULES, modules)
}

/// `mlx5_ib 479232 0 - Live 0x…`; holders end with a comma each, flags may stand among them in brackets.
fn module(root: &Root, line: &str) -> Option<Module> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let size = words.next()?.parse().ok()?;
    let references = match words.next()? {
        "-" => Fact::Absent,
        count => Fact::Known(count.parse().ok()?),
    };
    let holders = words
        .next()?
        .split(',')
        .filter(|holder| !holder.is_empty() && *holder != "-" && !holder.starts_with('['));
    let mut holders: Vec<_> = holders.map(str::to_owned).collect();
    holders.sort();
    let state = words.next()?.to_owned();
    let file = |file: &str| root.read(&format!("/sys/module/{name}/{file}"));
    Some(Module {
        size,
        references,
        holders,
        state,
        version: file("version"),
        source_version: file("srcversion"),
        name,
    })
}
