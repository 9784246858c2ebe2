//! The running kernel: this boot's id, its release and its modules (`/proc/modules`, kernel `kernel/module/procfs.c`).
//!
//! Where `/proc/modules` is not shown, `/sys/module` says the same (kernel ABI `testing/sysfs-module` and
//! `kernel/module/sysfs.c`): only a loadable module has an `initstate` there, a built-in one has none.

use serde::{Deserialize, Serialize};
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

/// Every module, the built-in ones too.
const SYS_MODULE: &str = "/sys/module";

/// One loaded kernel module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// Name, with underscores.
    pub name: String,
    /// Size in bytes.
    pub size: Fact<u64>,
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

/// Modules that are part of the kernel `release`: one path per line, `kernel/drivers/…/ib_core.ko` (kbuild
/// `modules.builtin`). Without a release nobody can look.
#[must_use]
pub fn built_in(root: &Root, release: Option<&str>) -> Sourced<Vec<String>> {
    let Some(release) = release else {
        let why = "the kernel's release is not known".to_owned();
        return Sourced::new("/lib/modules", Fact::Unreadable(why));
    };
    let path = format!("/lib/modules/{release}/modules.builtin");
    let name = |line: &str| {
        let file = line.rsplit('/').next()?;
        let name = file.trim().strip_suffix(".ko")?;
        Some(name.replace('-', "_"))
    };
    let fact = root
        .read(&path)
        .map(|text| text.lines().filter_map(name).collect());
    Sourced::new(path, fact)
}

/// Loaded modules, by name.
#[must_use]
pub fn modules(root: &Root) -> Sourced<Vec<Module>> {
    let listed = checked(root.read(MODULES), MODULES, "list of modules", |text| {
        let mut modules = text
            .lines()
            .map(|line| module(root, line))
            .collect::<Option<Vec<_>>>()?;
        modules.sort_by(|a, b| a.name.cmp(&b.name));
        Some(modules)
    });
    match listed {
        Fact::Absent => Sourced::new(SYS_MODULE, modules_in_sysfs(root)),
        listed => Sourced::new(MODULES, listed),
    }
}

fn modules_in_sysfs(root: &Root) -> Fact<Vec<Module>> {
    let names = match root.entries(SYS_MODULE) {
        Fact::Known(names) => names,
        Fact::Absent => return Fact::Absent,
        Fact::Unreadable(why) => return Fact::Unreadable(why),
    };
    let mut modules = Vec::new();
    for name in names {
        match module_in_sysfs(root, name) {
            Fact::Known(module) => modules.push(module),
            Fact::Absent => {}
            Fact::Unreadable(why) => return Fact::Unreadable(why),
        }
    }
    modules.sort_by(|a, b| a.name.cmp(&b.name));
    Fact::Known(modules)
}

/// A loadable module; `Absent` where it is built in.
fn module_in_sysfs(root: &Root, name: String) -> Fact<Module> {
    let path = |file: &str| format!("{SYS_MODULE}/{name}/{file}");
    let number = |file: &str| {
        let parse = |text: &str| text.parse::<u64>().ok();
        checked(root.read(&path(file)), &path(file), "number", parse)
    };
    let state = checked(
        root.read(&path("initstate")),
        &path("initstate"),
        "state",
        state_name,
    );
    let size = number("coresize");
    let mut holders = root
        .entries(&path("holders"))
        .known()
        .cloned()
        .unwrap_or_default();
    holders.sort();
    let (references, version) = (number("refcnt"), root.read(&path("version")));
    let source_version = root.read(&path("srcversion"));
    state.map(|state| Module {
        name,
        size,
        references,
        holders,
        state,
        version,
        source_version,
    })
}

/// The word of `/proc/modules` for one of `initstate`.
fn state_name(text: &str) -> Option<String> {
    let name = match text {
        "live" => "Live",
        "coming" => "Loading",
        "going" => "Unloading",
        _ => return None,
    };
    Some(name.to_owned())
}

/// `mlx5_ib 479232 0 - Live 0x…`; holders end with a comma each, flags may stand among them in brackets.
fn module(root: &Root, line: &str) -> Option<Module> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let size = Fact::Known(words.next()?.parse().ok()?);
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
