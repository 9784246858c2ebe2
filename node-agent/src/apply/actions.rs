//! Runs the actions of a plan: free ones, those of the grant, and those that a person allows. Of the grant one costly action
//! per turn, so that a grant that is taken back counts before the next one; the reboot comes when nothing else of it is left.

use std::collections::BTreeSet;

use crds::node::Cost;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::Applied;
use crate::action::{Action, Explain};
use crate::decide::Decision;
use crate::execute::{ExecuteError, execute};
use crate::gather::chain;
use crate::maintenance::{Next, Reboot, is_costly};
use crate::observed::Observed;
use crate::reboot::reboot;
use crate::settings::{ATTEMPTS_FILE, JOURNAL_FILE, MAINTENANCE_FILE, Settings};
use crate::store::{StoreError, write_json};
use crate::tools::Tools;
use crate::users;
use host::program::Outcome;

/// Everything that a run of actions needs.
pub(super) struct Run<'a> {
    pub(super) settings: &'a Settings,
    pub(super) observed: &'a Observed,
    pub(super) decision: &'a Decision,
    pub(super) allowed: Cost,
    pub(super) now: Timestamp,
}

impl Run<'_> {
    pub(super) fn all(&mut self, applied: &mut Applied) -> Result<(), StoreError> {
        let mut held_up = false;
        for action in &self.decision.plan.actions {
            let granted = is_costly(action) && self.is_granted(action);
            if action.blocked.is_some() {
                // What comes later in the list may need this one.
                held_up |= granted && !action.is_prepared();
                continue;
            }
            if !granted && action.change.cost() > self.allowed || granted && held_up {
                continue;
            }
            self.may_remember()?;
            if is_costly(action) && !self.is_free_of_users(applied) {
                return Ok(());
            }
            if granted {
                self.begin(applied)?;
            }
            let done = self.one(action, applied)?;
            if granted {
                applied.more = true;
                return Ok(());
            }
            if is_costly(action) && !done {
                return Ok(());
            }
        }
        self.reboot(applied)
    }

    fn is_granted(&self, action: &Action) -> bool {
        let accepted = self.decision.memory.maintenance.as_ref();
        accepted.is_some_and(|accepted| accepted.covers(action))
    }

    /// No action runs whose attempt, old value or grant could not be noted.
    fn may_remember(&self) -> Result<(), StoreError> {
        let unreadable = &self.observed.before.unusable.unreadable;
        let files = [ATTEMPTS_FILE, JOURNAL_FILE, MAINTENANCE_FILE].map(str::to_owned);
        match files.into_iter().find(|file| unreadable.contains(file)) {
            Some(path) => Err(StoreError::LeftAlone { path }),
            None => Ok(()),
        }
    }

    /// Asked before every costly action, of the kernel itself: pods and grants are what others believe.
    fn is_free_of_users(&self, applied: &mut Applied) -> bool {
        let found = users::blocking(&Tools::new(self.settings).users(), &BTreeSet::new());
        applied.waits = found.iter().map(ToString::to_string).collect();
        applied.waits.is_empty()
    }

    fn begin(&self, applied: &mut Applied) -> Result<(), StoreError> {
        let Some(accepted) = &mut applied.memory.maintenance else {
            return Ok(());
        };
        let whole = Timestamp::from_second(self.now.as_second()).unwrap_or(self.now);
        accepted.started_at.get_or_insert(Time(whole));
        write_json(&self.settings.root, MAINTENANCE_FILE, accepted).map(drop)
    }

    /// Runs one action; says whether it had its effect.
    fn one(&self, action: &Action, applied: &mut Applied) -> Result<bool, StoreError> {
        let state = &self.observed.state;
        let result = execute(self.settings, state, action, &mut applied.memory, self.now);
        let name = format!("{} {}", action.change.kind(), action.change.target());
        let error = match result {
            Ok(()) => None,
            // Without a place to count attempts nothing more is tried.
            Err(ExecuteError::Store(error)) => return Err(error),
            Err(error) => Some(chain(&error)),
        };
        match &error {
            None => tracing::info!(action = name, "done"),
            Some(error) => tracing::warn!(action = name, error, "failed"),
        }
        let done = error.is_none();
        applied.actions.push((name, error));
        Ok(done)
    }

    /// Noted before it is asked for: an agent that ends in between asks again, on its budget.
    fn reboot(&self, applied: &mut Applied) -> Result<(), StoreError> {
        let (root, boot_id) = (&self.settings.root, &self.observed.state.boot_id);
        let Some(accepted) = &mut applied.memory.maintenance else {
            return Ok(());
        };
        let attempts = &applied.memory.attempts;
        match accepted.next(&self.decision.plan, attempts, boot_id, self.now) {
            Next::Actions | Next::GoesDown => return Ok(()),
            Next::DidNotGoDown => accepted.reboot = None,
            Next::Reboot => {
                if !self.is_free_of_users(applied) {
                    return Ok(());
                }
                return self.go_down(applied);
            }
        }
        write_json(root, MAINTENANCE_FILE, accepted)?;
        applied.memory.attempts.not_rebooted();
        write_json(root, ATTEMPTS_FILE, &applied.memory.attempts)?;
        applied.more = true;
        Ok(())
    }

    fn go_down(&self, applied: &mut Applied) -> Result<(), StoreError> {
        let root = &self.settings.root;
        if let Some(accepted) = &mut applied.memory.maintenance {
            accepted.reboot = Some(Reboot {
                boot_id: self.observed.state.boot_id.clone(),
                at: Time(self.now),
            });
            write_json(root, MAINTENANCE_FILE, accepted)?;
        }
        let error = match reboot(self.settings) {
            Ok(Outcome::Succeeded | Outcome::Unknown { .. }) => None,
            Ok(Outcome::Failed { status, stderr }) => Some(format!("{status}: {stderr}")),
            Err(error) => Some(chain(&error)),
        };
        if error.is_some() {
            if let Some(accepted) = &mut applied.memory.maintenance {
                accepted.reboot = None;
                write_json(root, MAINTENANCE_FILE, accepted)?;
            }
            applied.memory.attempts.not_rebooted();
            write_json(root, ATTEMPTS_FILE, &applied.memory.attempts)?;
        }
        applied.actions.push(("Reboot host".to_owned(), error));
        Ok(())
    }
}
