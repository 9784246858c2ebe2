//! One run of the package manager: found again where it outlives the agent, judged by the package database, gone on with at
//! once where it was cut off.

use host::facts::install::install;
use host::facts::install::packages::Manager;
use topology::fact::Fact;

use super::repositories::described_by_us;
use super::{PATIENCE, PackageError, Run, ask, installed, verify};
use crate::action::{Change, DriverChange};
use crate::execute::ExecuteError;
use crate::job::{self, Job, Seen};
use crate::packages::arguments::{self, Invocation};
use crate::packages::failure::{classify, verdict};
use crate::packages::{Installed, PackageName, Wish, Wishes};
use crate::planner::Memory;
use crate::settings::ATTEMPTS_FILE;
use crate::store::write_json;

/// What is to run now, what before it, and whether something is to run after it.
struct Step {
    refresh: Vec<Invocation>,
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
        let mut ended = None;
        if let Some(Seen { job, runs }) = job::seen(&self.settings.root, &self.state.boot_id)? {
            match (runs, job.change == self.key()) {
                (true, _) => return Err(self.underway(&job)),
                (false, true) if self.is_judged() => return self.settle(&job, memory),
                (false, true) => ended = Some(job),
                (false, false) => {}
            }
        }
        let mut earlier = ended.as_ref().map(|job| job.before.clone());
        for _ in 0..STEPS {
            let now = installed(self.settings).map_err(|seen| self.unmet(seen))?;
            let before = earlier
                .get_or_insert_with(|| now.keys().cloned().collect())
                .clone();
            let Some(step) = self.step(manager, wishes, &now, memory) else {
                return Ok(());
            };
            // A step that is done is followed by a later one; the same one again means that it was cut off.
            if let Some(job) = ended.take().filter(|job| job.last || !step.last) {
                self.go_on(&job, memory)?;
            }
            for refresh in &step.refresh {
                ask(self.settings, refresh)?;
            }
            let job = self.job(before, step.last, memory);
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

    /// Whether a run that has ended tells how: by what is there, or by what it said. One that was cut off does not.
    fn is_judged(&self) -> bool {
        let said = || job::log(&self.settings.root);
        verify(self.settings, self.change).is_ok() || verdict(&said()).is_some()
    }

    /// Counts what goes on after the run `job` was cut off, while there are attempts.
    fn go_on(&self, job: &Job, memory: &mut Memory) -> Result<(), ExecuteError> {
        let change = Change::Driver(self.change.clone());
        let (counted, _) = memory.attempts.of(&change);
        if counted > job.attempt {
            return Ok(());
        }
        if !memory.attempts.is_left(&change) {
            job::settle(&self.settings.root)?;
            let what = self.what();
            return Err(PackageError::CutOff {
                what,
                times: counted,
            }
            .into());
        }
        memory.attempts.begin(&change, self.now);
        write_json(&self.settings.root, ATTEMPTS_FILE, &memory.attempts)?;
        Ok(())
    }

    /// One call at a time, each from what is there; `None` where nothing is to be done.
    fn step(
        &self,
        manager: Manager,
        wishes: &Wishes,
        now: &Installed,
        memory: &Memory,
    ) -> Option<Step> {
        let packages = install(&self.settings.root).packages;
        if manager == Manager::Apt && packages.interrupted.fact == Fact::Known(true) {
            let what = arguments::go_on();
            return Some(Step {
                refresh: Vec::new(),
                what,
                last: false,
            });
        }
        let open = crate::packages::open(wishes, now);
        let mut calls = arguments::change(manager, &open).into_iter();
        let what = calls.next()?;
        let installs = open.values().any(|wish| matches!(wish, Wish::Version(_)));
        let refresh = installs.then(|| arguments::refresh(manager, &described_by_us(memory)));
        Some(Step {
            refresh: refresh.unwrap_or_default(),
            what,
            last: calls.next().is_none(),
        })
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
