//! One run of the package manager: found again where it outlives the agent, judged by the package database.

use host::facts::install::install;
use host::facts::install::packages::Manager;
use topology::fact::Fact;

use super::repositories::described_by_us;
use super::{PATIENCE, PackageError, Run, ask, installed, verify};
use crate::action::{Change, DriverChange};
use crate::execute::ExecuteError;
use crate::job::{self, Job, Seen};
use crate::packages::arguments::{self, Invocation};
use crate::packages::failure::classify;
use crate::packages::{Installed, PackageName, Wish, Wishes};
use crate::planner::Memory;

/// What is to run now, and whether something is to run after it.
struct Step {
    what: Invocation,
    last: bool,
}

/// Steps of one run: go on after an interruption, remove, install.
const STEPS: usize = 3;

impl Run<'_> {
    pub(super) fn packages(
        &self,
        manager: Manager,
        wishes: &Wishes,
        memory: &mut Memory,
    ) -> Result<(), ExecuteError> {
        let mut earlier = None;
        if let Some(Seen { job, runs }) = job::seen(&self.settings.root, &self.state.boot_id)? {
            match (runs, job.change == self.key()) {
                (true, _) => return Err(self.underway(&job)),
                (false, true) if job.last => return self.settle(&job, memory),
                (false, true) => earlier = Some(job.before),
                (false, false) => {}
            }
        }
        for _ in 0..STEPS {
            let now = installed(self.settings).map_err(|seen| self.unmet(seen))?;
            let before = earlier
                .get_or_insert_with(|| now.keys().cloned().collect())
                .clone();
            let Some(step) = self.step(manager, wishes, &now, memory)? else {
                return Ok(());
            };
            let job = self.job(before, step.last);
            if !job::start_and_wait(self.settings, job.clone(), &step.what, PATIENCE)? {
                return Err(self.underway(&job));
            }
            if step.last || verify(self.settings, self.change).is_ok() {
                return self.settle(&job, memory);
            }
        }
        let seen = "it needs more steps than there are".to_owned();
        Err(self.unmet(seen))
    }

    /// One call at a time, each from what is there; `None` where nothing is to be done.
    fn step(
        &self,
        manager: Manager,
        wishes: &Wishes,
        now: &Installed,
        memory: &Memory,
    ) -> Result<Option<Step>, ExecuteError> {
        let packages = install(&self.settings.root).packages;
        if manager == Manager::Apt && packages.interrupted.fact == Fact::Known(true) {
            let what = arguments::go_on();
            return Ok(Some(Step { what, last: false }));
        }
        let open = crate::packages::open(wishes, now);
        let mut calls = arguments::change(manager, &open).into_iter();
        let Some(what) = calls.next() else {
            return Ok(None);
        };
        if open.values().any(|wish| matches!(wish, Wish::Version(_))) {
            for refresh in arguments::refresh(manager, &described_by_us(memory)) {
                ask(self.settings, &refresh)?;
            }
        }
        let last = calls.next().is_none();
        Ok(Some(Step { what, last }))
    }

    /// The database says how it ended, the log why.
    fn settle(&self, job: &Job, memory: &mut Memory) -> Result<(), ExecuteError> {
        let root = &self.settings.root;
        let result = verify(self.settings, self.change);
        if result.is_ok() {
            self.note(job, memory)?;
        }
        job::settle(root)?;
        let Err(seen) = result else {
            return Ok(());
        };
        let said = job::log(root);
        if said.trim().is_empty() {
            return Err(self.unmet(seen));
        }
        Err(PackageError::Failed {
            what: self.what(),
            failure: classify(&said),
        }
        .into())
    }

    /// Everything that came with the packages goes with them.
    fn note(&self, job: &Job, memory: &mut Memory) -> Result<(), ExecuteError> {
        let DriverChange::SetPackages { manager, .. } = self.change else {
            return Ok(());
        };
        let place = Change::Driver(self.change.clone()).place();
        let Some(entry) = memory.journal.changed.get_mut(&place) else {
            return Ok(());
        };
        let after = installed(self.settings).map_err(|seen| self.unmet(seen))?;
        let came = after.keys().filter(|name| !job.before.contains(*name));
        let came = came.filter_map(|name| PackageName::new(name).ok());
        let mut wishes: Wishes = came.map(|name| (name, Wish::Absent)).collect();
        if let Change::Driver(DriverChange::SetPackages {
            wishes: earlier, ..
        }) = &entry.undo
        {
            wishes.extend(earlier.clone());
        }
        entry.undo = Change::Driver(DriverChange::SetPackages {
            manager: *manager,
            wishes,
        });
        Ok(())
    }
}
