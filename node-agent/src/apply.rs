//! Carries a decision out: files first, so that the plugin never names a CDI device that is not there yet, then actions.
//! Does nothing at all but in mode Enforce. Called by [`crate::cycle`] and by `node-agent apply`.

use crds::cluster::Mode;
use crds::node::Cost;
use host::root::Root;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::action::Explain;
use crate::cdi;
use crate::decide::Decision;
use crate::desired::Desired;
use crate::execute::{ExecuteError, execute};
use crate::gather::chain;
use crate::observed::{Observed, Unusable};
use crate::planner::{Memory, Plan};
use crate::settings::{ATTEMPTS_FILE, JOURNAL_FILE, NODE_FILE, PARTITION_FILE, Settings};
use crate::store::{StoreError, set_aside, write_json, write_text};

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Files that changed, below the root.
    pub written: Vec<String>,
    /// Actions that ran, each with the error that it met.
    pub actions: Vec<(String, Option<String>)>,
    /// What is remembered from now on.
    pub memory: Memory,
}

/// What could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// What must stand before the node file may say more than it did: only withdrawals are in force.
    #[error(transparent)]
    Devices(StoreError),
    /// Anything after that.
    #[error(transparent)]
    Other(#[from] StoreError),
}

impl ApplyError {
    /// The message with that of its cause, on one line.
    #[must_use]
    pub fn chain(&self) -> String {
        match self {
            Self::Devices(error) | Self::Other(error) => error.chain(),
        }
    }
}

/// Carries out what the mode allows, actions up to the cost `allowed`.
pub fn apply(
    settings: &Settings,
    observed: &Observed,
    desired: &Desired,
    decision: &Decision,
    allowed: Cost,
    now: Timestamp,
) -> Result<Applied, ApplyError> {
    let mut applied = Applied {
        memory: decision.memory.clone(),
        ..Applied::default()
    };
    if desired.mode != Mode::Enforce {
        return Ok(applied);
    }
    applied.written = write_files(settings, observed, decision)?;
    if !desired.paused {
        may_remember(observed, &decision.plan, allowed)?;
        run_actions(
            settings,
            observed,
            &decision.plan,
            allowed,
            now,
            &mut applied,
        )?;
    }
    Ok(applied)
}

/// No action runs whose attempt or old value could not be noted.
fn may_remember(observed: &Observed, plan: &Plan, allowed: Cost) -> Result<(), StoreError> {
    let unreadable = &observed.before.unusable.unreadable;
    let file = [ATTEMPTS_FILE, JOURNAL_FILE].map(str::to_owned);
    match file.into_iter().find(|file| unreadable.contains(file)) {
        Some(path) if plan.runnable(allowed).next().is_some() => {
            Err(StoreError::LeftAlone { path })
        }
        _ => Ok(()),
    }
}

/// Runs the actions of a plan that may run now.
pub fn run_actions(
    settings: &Settings,
    observed: &Observed,
    plan: &Plan,
    allowed: Cost,
    now: Timestamp,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    for action in plan.runnable(allowed) {
        let change = &action.change;
        let result = execute(settings, &observed.state, action, &mut applied.memory, now);
        let name = format!("{} {}", change.kind(), change.target());
        match &result {
            Ok(()) => tracing::info!(action = name, "done"),
            Err(error) => tracing::warn!(action = name, error = chain(error), "failed"),
        }
        match result {
            // Without a place to count attempts nothing more is tried.
            Err(ExecuteError::Store(error)) => return Err(error),
            result => applied
                .actions
                .push((name, result.err().map(|error| chain(&error)))),
        }
    }
    Ok(())
}

fn write_files(
    settings: &Settings,
    observed: &Observed,
    decision: &Decision,
) -> Result<Vec<String>, ApplyError> {
    let root = &settings.root;
    let mut written = Vec::new();
    let mut note = |path: &str, changed: bool| {
        if changed {
            written.push(path.to_owned());
        }
    };
    if let Err(error) = describe(settings, observed, decision, &mut note) {
        withdraw(root, decision);
        return Err(ApplyError::Devices(error));
    }
    let node_file = decision.node_file.to_json();
    note(NODE_FILE, write_text(root, NODE_FILE, &node_file)?);
    remove_stale(settings, observed, decision, &mut note)?;
    remember(settings, observed, decision, &mut note)?;
    Ok(written)
}

/// What must be on disk before the plugin may hand the devices out.
fn describe(
    settings: &Settings,
    observed: &Observed,
    decision: &Decision,
    note: &mut impl FnMut(&str, bool),
) -> Result<(), StoreError> {
    let root = &settings.root;
    let before = &observed.before;
    if let Some(kept) = &decision.kept {
        let changed = before.kept.as_ref() != Some(kept);
        note(
            PARTITION_FILE,
            write_own(root, PARTITION_FILE, kept, changed, &before.unusable)?,
        );
    }
    for (path, text) in &decision.pair_files {
        note(path, write_text(root, path, text)?);
    }
    let cdi_file = settings.cdi_file();
    if let Some(spec) = &decision.cdi {
        note(&cdi_file, write_json(root, &cdi_file, spec)?);
    }
    Ok(())
}

/// A disk that is full or read-only must not keep a broken device on offer. The error that led here is the one to report.
fn withdraw(root: &Root, decision: &Decision) {
    let Some(file) = &decision.restricted else {
        return;
    };
    match write_text(root, NODE_FILE, &file.to_json()) {
        Ok(_) => {}
        Err(error) => tracing::error!(error = error.chain(), "withdraw devices"),
    }
}

/// Last, when the node file no longer names what goes.
fn remove_stale(
    settings: &Settings,
    observed: &Observed,
    decision: &Decision,
    note: &mut impl FnMut(&str, bool),
) -> Result<(), StoreError> {
    let root = &settings.root;
    for path in &decision.stale_pair_files {
        debug_assert!(path.starts_with(cdi::PAIR_DIR));
        root.remove(path)?;
        note(path, true);
    }
    if decision.cdi.is_none() && observed.before.cdi.is_some() {
        root.remove(&settings.cdi_file())?;
        note(&settings.cdi_file(), true);
    }
    Ok(())
}

/// A reset of the attempts is remembered at once, else the same annotation would reset them again.
fn remember(
    settings: &Settings,
    observed: &Observed,
    decision: &Decision,
    note: &mut impl FnMut(&str, bool),
) -> Result<(), StoreError> {
    let (before, now) = (&observed.before.memory, &decision.memory);
    let (root, unusable) = (&settings.root, &observed.before.unusable);
    let changed = before.attempts != now.attempts;
    if changed || unusable.broken.contains(ATTEMPTS_FILE) {
        let written = write_own(root, ATTEMPTS_FILE, &now.attempts, changed, unusable)?;
        note(ATTEMPTS_FILE, written);
    }
    let changed = before.journal != now.journal;
    if changed || unusable.broken.contains(JOURNAL_FILE) {
        let written = write_own(root, JOURNAL_FILE, &now.journal, changed, unusable)?;
        note(JOURNAL_FILE, written);
    }
    Ok(())
}

/// Writes a file of the agent's own. A broken one is put aside first, for a person to look at; one that could not be read
/// stays, and that is an error where it would have had to change.
fn write_own<T: Serialize>(
    root: &Root,
    path: &str,
    value: &T,
    changed: bool,
    unusable: &Unusable,
) -> Result<bool, StoreError> {
    if unusable.unreadable.contains(path) {
        let path = path.to_owned();
        return if changed {
            Err(StoreError::LeftAlone { path })
        } else {
            Ok(false)
        };
    }
    if unusable.broken.contains(path) {
        set_aside(root, path)?;
    }
    write_json(root, path, value)
}
