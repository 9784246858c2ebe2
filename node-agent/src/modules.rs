//! Kernel modules: names, states, and loading through the host's own `modprobe`.
//!
//! Names and states are pure. [`ModuleTool`] runs `chroot ROOT modprobe -- NAME`: the host's kmod knows its compression, its
//! signatures and its `modprobe.d`. That a command succeeded proves nothing: the caller reads `/proc/modules` again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use host::facts::kernel::Module;
use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use host::program::{CommandError, Outcome, run};

/// How long a load or unload may take.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// A module's name as the kernel spells it: `-` reads as `_` (kernel `scripts/Makefile.lib`, kmod).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModuleName(String);

/// A text that is no module name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no module name: write 1 to 55 letters, digits, - or _, as in ib_umad")]
pub struct ModuleNameError(String);

impl ModuleName {
    /// Checks and normalises a name. `MODULE_NAME_LEN` of the kernel is 56 with its final zero.
    pub fn new(text: &str) -> Result<Self, ModuleNameError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let valid = (1..=55).contains(&text.len()) && text.bytes().all(allowed);
        if valid && !text.starts_with('-') {
            Ok(Self(text.replace('-', "_")))
        } else {
            Err(ModuleNameError(text.to_owned()))
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ModuleName {
    type Error = ModuleNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<ModuleName> for String {
    fn from(name: ModuleName) -> Self {
        name.0
    }
}

/// State of a module, the fifth field of `/proc/modules` (kernel `kernel/module/procfs.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModuleState {
    /// In use or usable.
    Live,
    /// Its init runs.
    Loading,
    /// Its exit runs.
    Unloading,
}

/// Loaded modules by name.
pub type Modules = BTreeMap<ModuleName, ModuleState>;

/// What `host` read from `/proc/modules`, by name. A state that this version does not know counts as unreadable: nothing
/// may be concluded from it.
#[must_use]
pub fn from_facts(listed: Fact<Vec<Module>>) -> Fact<Modules> {
    let listed = match listed {
        Fact::Known(listed) => listed,
        Fact::Absent => return Fact::Absent,
        Fact::Unreadable(why) => return Fact::Unreadable(why),
    };
    let mut modules = Modules::new();
    for module in listed {
        match (ModuleName::new(&module.name), state(&module.state)) {
            (Ok(name), Some(state)) => drop(modules.insert(name, state)),
            _ => {
                return Fact::Unreadable(format!(
                    "/proc/modules: `{} {}`",
                    module.name, module.state
                ));
            }
        }
    }
    Fact::Known(modules)
}

fn state(text: &str) -> Option<ModuleState> {
    match text {
        "Live" => Some(ModuleState::Live),
        "Loading" => Some(ModuleState::Loading),
        "Unloading" => Some(ModuleState::Unloading),
        _ => None,
    }
}

/// Loads and unloads modules of the host.
#[derive(Clone, Debug)]
pub struct ModuleTool {
    /// The host's root.
    pub root: PathBuf,
    /// The `chroot` program.
    pub chroot: PathBuf,
    /// How long a load or unload may take.
    pub deadline: Duration,
}

impl ModuleTool {
    /// Loads `name` and what it depends on.
    pub fn load(&self, name: &ModuleName) -> Result<Outcome, CommandError> {
        self.run(&["modprobe", "--", name.as_str()])
    }

    /// Unloads `name` alone; the kernel refuses while it is used.
    pub fn unload(&self, name: &ModuleName) -> Result<Outcome, CommandError> {
        self.run(&["rmmod", "--", name.as_str()])
    }

    fn run(&self, arguments: &[&str]) -> Result<Outcome, CommandError> {
        let mut all = vec![self.root.as_os_str()];
        all.extend(arguments.iter().map(OsStr::new));
        run(self.chroot.as_os_str(), &all, self.deadline)
    }
}

#[cfg(test)]
mod tests;
