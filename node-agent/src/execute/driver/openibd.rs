//! Restarts the RDMA stack by openibd, with nvidia-peermem out of the way and back again.

use host::facts::install::install;
use host::root::Root;
use topology::fact::Fact;

use super::{PATIENCE, PackageError, Run, verify};
use crate::action::Change;
use crate::execute::{self, ExecuteError, judge};
use crate::job::{self, Job, Seen};
use crate::modules::ModuleName;
use crate::packages::arguments::Invocation;
use crate::planner::Memory;
use host::program::Outcome;

/// Holds `ib_core`, and openibd does not unload it.
const PEERMEM: &str = "nvidia_peermem";

impl Run<'_> {
    /// nvidia-peermem is unloaded last, and comes back: it holds `ib_core`, and someone may load it in between.
    pub(super) fn openibd(&self, memory: &mut Memory) -> Result<(), ExecuteError> {
        if let Some(Seen { job, runs }) = job::seen(&self.settings.root, &self.state.boot_id)? {
            if runs {
                return Err(self.underway(&job));
            }
            if job.change == self.key() {
                return self.restarted(&job, memory);
            }
        }
        let peermem = ModuleName::new(PEERMEM).ok();
        let peermem = peermem.filter(|name| self.state.has_module(name) == Some(true));
        if let Some(name) = &peermem {
            self.unload(name)?;
        }
        let what = Invocation {
            program: "/etc/init.d/openibd",
            arguments: vec!["restart".to_owned()],
        };
        let unloaded = peermem.iter().map(ToString::to_string).collect();
        let job = self.job(unloaded, true, memory);
        if !job::start_and_wait(self.settings, job.clone(), &what, PATIENCE)? {
            return Err(self.underway(&job));
        }
        self.restarted(&job, memory)
    }

    fn unload(&self, name: &ModuleName) -> Result<(), ExecuteError> {
        let change = Change::UnloadModule(name.clone());
        let outcome = self.settings.module_tool().unload(name)?;
        let gone = execute::verify(self.settings, &change);
        if outcome == Outcome::Succeeded && gone.is_err() {
            let name = name.to_string();
            return Err(PackageError::DependentReloaded { name }.into());
        }
        judge(&format!("rmmod {name}"), outcome, gone)
    }

    /// What was unloaded for the restart is loaded again, however the restart ended. What openibd unloaded of ours nobody
    /// else did.
    fn restarted(&self, job: &Job, memory: &mut Memory) -> Result<(), ExecuteError> {
        let root = &self.settings.root;
        let ours = memory.journal.modules.values_mut();
        ours.for_each(|entry| entry.asserted = false);
        for name in job
            .before
            .iter()
            .filter_map(|name| ModuleName::new(name).ok())
        {
            let outcome = self.settings.module_tool().load(&name)?;
            let change = Change::LoadModule(name.clone());
            judge(
                &format!("modprobe {name}"),
                outcome,
                execute::verify(self.settings, &change),
            )?;
        }
        job::settle(root)?;
        verify(self.settings, self.change).map_err(|seen| {
            let said = job::log(root);
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            let seen = format!("{seen}; openibd said `{}`", last.unwrap_or_default().trim());
            self.unmet(seen)
        })
    }
}

/// Nothing of the RDMA stack is loaded from other files than those on disk, and the driver is loaded.
pub(super) fn in_effect(root: &Root) -> Result<(), String> {
    let modules = install(root).modules;
    let files = match modules.fact {
        Fact::Known(files) => files,
        Fact::Absent => return Err(format!("{} is not there", modules.source)),
        Fact::Unreadable(why) => return Err(why),
    };
    let rdma = |name: &str| {
        ["ib_", "mlx", "rdma_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    let other = files
        .iter()
        .find(|(name, file)| rdma(name) && file.is_loaded == Fact::Known(false));
    if let Some((name, _)) = other {
        return Err(format!("{name} is still loaded from another file"));
    }
    let driver = files.get("mlx5_core").map(|file| &file.is_loaded);
    match driver {
        Some(Fact::Absent) => Err("mlx5_core is not loaded".to_owned()),
        _ => Ok(()),
    }
}
