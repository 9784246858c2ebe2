//! Carries a decision out: files first, so that the plugin never names a CDI device that is not there yet, then actions.
//! Does nothing at all but in mode Enforce. Called by [`crate::cycle`] and by `node-agent apply`.

use crds::cluster::Mode;
use crds::node::Cost;
use host::root::Root;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::cdi;
use crate::decide::Decision;
use crate::desired::Desired;
use crate::observed::{Observed, Unusable};
use crate::planner::Memory;
use crate::settings::{
    ATTEMPTS_FILE, JOURNAL_FILE, MAINTENANCE_FILE, NODE_FILE, PARTITION_FILE, Settings,
};
use crate::store::{StoreError, set_aside, write_json, write_text};

mod actions;

use actions::Run;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Files that changed, below the root.
    pub written: Vec<String>,
    /// Actions that ran, each with the error that it met.
    pub actions: Vec<(String, Option<String>)>,
    /// Who uses RDMA and holds up the next costly action.
    pub waits: Vec<String>,
    /// Whether granted actions wait for the next turn, which may come at once.
    pub more: bool,
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

/// What may be done beside writing the agent's own files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Actions up to this cost run without a grant.
    pub allowed: Cost,
    /// Whether actions run at all: the lock is ours.
    pub acts: bool,
}

/// Carries out what the mode allows: free actions, granted ones, and those that the permit allows.
pub fn apply(
    settings: &Settings,
    observed: &Observed,
    desired: &Desired,
    decision: &Decision,
    permit: Permit,
    now: Timestamp,
) -> Result<Applied, ApplyError> {
    let mut applied = Applied {
        memory: decision.memory.clone(),
        ..Applied::default()
    };
    if desired.mode != Mode::Enforce {
        return Ok(applied);
    }
    applied.written = write_files(settings, observed, decision, permit)?;
    if !desired.paused && permit.acts {
        let mut run = Run {
            settings,
            observed,
            decision,
            allowed: permit.allowed,
            now,
        };
        run.all(&mut applied)?;
    }
    Ok(applied)
}

fn write_files(
    settings: &Settings,
    observed: &Observed,
    decision: &Decision,
    permit: Permit,
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
    let node_file = decision.for_plugin().to_json();
    note(NODE_FILE, write_text(root, NODE_FILE, &node_file)?);
    remove_stale(settings, observed, decision, &mut note)?;
    // Whoever has the lock counts attempts of his own now.
    if permit.acts {
        remember(settings, observed, decision, &mut note)?;
    }
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
    // First: where only the attempts had forgotten a reboot, what it has taken back would be taken back once more.
    let changed = before.journal != now.journal;
    if changed || unusable.broken.contains(JOURNAL_FILE) {
        let written = write_own(root, JOURNAL_FILE, &now.journal, changed, unusable)?;
        note(JOURNAL_FILE, written);
    }
    let changed = before.attempts != now.attempts;
    if changed || unusable.broken.contains(ATTEMPTS_FILE) {
        let written = write_own(root, ATTEMPTS_FILE, &now.attempts, changed, unusable)?;
        note(ATTEMPTS_FILE, written);
    }
    let changed = before.maintenance != now.maintenance;
    match &now.maintenance {
        Some(accepted) if changed => {
            let written = write_own(root, MAINTENANCE_FILE, accepted, changed, unusable)?;
            note(MAINTENANCE_FILE, written);
        }
        None if changed || unusable.broken.contains(MAINTENANCE_FILE) => {
            root.remove(MAINTENANCE_FILE)?;
            note(MAINTENANCE_FILE, true);
        }
        _ => {}
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
