//! Decides what to change on a host: [`World`] → [`Plan`]. Pure; called by [`crate::decide`] once per
//! cycle. What cannot or must not be done becomes a finding, never a half-done action.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crds::node::{Cost, Finding, PlanStatus};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use topology::machine::Machine;

use crate::action::{Action, BUDGET, Blocked, Change, Explain};
use crate::attempts::Attempts;
use crate::desired::Desired;
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::job::Seen;
use crate::journal::Journal;
use crate::maintenance::Accepted;

mod driver;
#[cfg(test)]
pub(crate) mod driver_fixtures;
mod fabric;
mod modules;
mod openib;
mod restore;
mod tuning;

pub(crate) use fabric::ROCE_HEADERS;
pub use restore::restore;
pub(crate) use tuning::needless_redirects;

/// Everything that the planner remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What was changed.
    pub journal: Journal,
    /// What was tried.
    pub attempts: Attempts,
    /// The grant that was taken in.
    pub maintenance: Option<Accepted>,
}

impl Memory {
    /// The memory that holds for what is desired now: a new install hash or reset annotation starts the counts anew and
    /// lets contested settings be set once more.
    #[must_use]
    pub fn current(mut self, desired: &Desired) -> Self {
        let reset = desired.reset_attempts.as_deref();
        let (attempts, fresh) = self.attempts.current(&desired.install_hash, reset);
        if fresh {
            self.journal.release();
        }
        Self { attempts, ..self }
    }

    /// The memory as of the boot `boot_id`: what was prepared in an earlier one has had its reboot.
    #[must_use]
    pub fn booted(self, boot_id: &str) -> Self {
        let attempts = self.attempts.booted(boot_id);
        Self { attempts, ..self }
    }

    /// The memory after `plan` was made, which saw what is in effect. Where that was the way back, nothing is left to take back.
    #[must_use]
    pub fn seen(mut self, plan: &Plan, restores: bool) -> Self {
        if restores {
            let entries = &mut self.journal.changed;
            entries.retain(|_, entry| !plan.met.contains(&entry.undo));
        }
        let attempts = self.attempts.in_effect(&plan.met);
        Self { attempts, ..self }
    }
}

/// Everything that a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// What was read from the host.
    pub state: &'a HostState,
    /// GPUs and NICs, with roles.
    pub machine: &'a Machine,
    /// What is asked.
    pub desired: &'a Desired,
    /// What is remembered.
    pub memory: &'a Memory,
    /// The time.
    pub now: Timestamp,
}

/// What to change, in order, and what stands in the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The actions, in the order in which they run.
    pub actions: Vec<Action>,
    /// What was found on the way.
    pub findings: Vec<Finding>,
    /// Addresses in the ranges of the rails that are here, or on a link, and not by the operator's word.
    #[serde(skip)]
    pub in_use: BTreeSet<IpAddr>,
    /// What was seen to be in effect already: the changes that would bring it.
    #[serde(skip)]
    pub met: BTreeSet<Change>,
}

impl Plan {
    /// Actions that may run now and cost no more than `allowed`.
    pub fn runnable(&self, allowed: Cost) -> impl Iterator<Item = &Action> {
        let free = move |a: &&Action| a.blocked.is_none() && a.change.cost() <= allowed;
        self.actions.iter().filter(free)
    }

    /// The plan as it stands in the status; `None` where there is nothing to do.
    pub fn status(&self, install_hash: &str) -> Result<Option<PlanStatus>, serde_json::Error> {
        if self.actions.is_empty() {
            return Ok(None);
        }
        let actions: Vec<_> = self.actions.iter().map(Action::status).collect();
        Ok(Some(PlanStatus {
            hash: crds::hash::plan_hash(&actions, install_hash)?,
            install_hash: install_hash.to_owned(),
            cost: actions.iter().map(|a| a.cost).max().unwrap_or_default(),
            actions,
        }))
    }

    fn find(&mut self, id: FindingId, component: impl Into<String>, message: impl AsRef<str>) {
        self.findings.push(id.about(component, message));
    }

    /// Plans `change`, unless someone else undid it after us. `undo` brings back what `seen` describes.
    pub fn ensure(
        &mut self,
        world: &World<'_>,
        change: Change,
        undo: Change,
        seen: impl Into<String>,
    ) {
        let memory = world.memory;
        let ours = memory.journal.changed.get(&change.place());
        // What was tried and not verified was noted, and never was so.
        let tried = memory.attempts.of(&change).0 > 0;
        let lost = !tried
            && ours.is_some_and(|ours| {
                ours.asserted && ours.done == change && ours.lasts(&world.state.boot_id)
            });
        if lost {
            return self.contested(&change, &seen.into());
        }
        self.act(change, seen.into(), memory, world.now).undo = Some(undo);
    }

    fn contested(&mut self, change: &Change, seen: &str) {
        let message = format!(
            "{} = {} was set by this agent, and now {seen}: someone else changes it. Nothing is set again until the cluster's specification changes or the GpuRdmaNode is annotated with {}",
            change.target(),
            change.desired(),
            crds::names::RESET_ATTEMPTS
        );
        self.find(FindingId::ForeignOwner, change.target(), message);
    }

    /// Plans to see how an attempt of `change` ends that was begun: it was counted then, so that neither budget nor pause holds
    /// that up, and nothing has failed yet. `waits` is what it must wait for.
    fn follow(
        &mut self,
        change: Change,
        precondition: String,
        memory: &Memory,
        waits: Option<String>,
    ) -> &mut Action {
        let (counted, _) = memory.attempts.of(&change);
        self.actions.push_mut(Action {
            change,
            undo: None,
            precondition,
            attempts: counted.saturating_sub(1),
            budget: BUDGET,
            blocked: waits.map(Blocked::Waits),
            last_error: None,
        })
    }

    fn act(
        &mut self,
        change: Change,
        precondition: String,
        memory: &Memory,
        now: Timestamp,
    ) -> &mut Action {
        let (attempts, last_error) = memory.attempts.of(&change);
        let blocked = memory.attempts.blocks(&change, now);
        let action = Action {
            change,
            undo: None,
            precondition,
            attempts,
            budget: BUDGET,
            blocked,
            last_error,
        };
        if action.is_given_up() {
            let component = format!("{} {}", action.change.kind(), action.change.target());
            self.find(FindingId::AttemptsExhausted, component, action.message());
        }
        self.actions.push_mut(action)
    }
}

/// The run of `change` that was started and not judged.
fn under_way<'a>(state: &'a HostState, memory: &Memory, change: &Change) -> Option<&'a Seen> {
    let seen = state.job.as_ref();
    seen.filter(|seen| seen.is_open(change, &memory.attempts))
}

/// What brings the host to what is desired.
#[must_use]
pub fn plan(world: &World<'_>) -> Plan {
    let World {
        state,
        desired,
        memory,
        now,
        ..
    } = *world;
    let mut plan = Plan::default();
    driver::plan(&mut plan, world);
    for name in &desired.modules {
        modules::load(&mut plan, name, "driver.modules", state, memory, now);
    }
    openib::keys(&mut plan, state, desired, memory, now);
    fabric::plan(&mut plan, world);
    tuning::plan(&mut plan, world);
    plan
}

#[cfg(test)]
mod tests;
