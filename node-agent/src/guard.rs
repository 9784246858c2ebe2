//! The safety line of changes that may cut this node off: the API server must be reachable before and after, else the agent
//! itself takes the change back within a minute. What is about to be done, and what undoes it, is on disk before, so that
//! a crash in between is undone at the next start. [`crate::execute`] calls [`guarded`], [`crate::run`] and
//! [`crate::apply`] call [`recover`].

mod reach;

use std::thread::sleep;
use std::time::{Duration, Instant};

use host::root::Root;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

pub use reach::{Servers, servers};

use crate::action::{Change, Explain};
use crate::attempts::Attempts;
use crate::execute::ExecuteError;
use crate::gather::chain;
use crate::journal::Journal;
use crate::settings::{ATTEMPTS_FILE, GUARD_FILE, JOURNAL_FILE};
use crate::store::{StoreError, read_json, write_json};

/// How long is waited for what.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For the API server to be reachable again: a link that bounces, a switch that learns.
    pub patience: Duration,
    /// Between two tries.
    pub pause: Duration,
}

/// A change, its patience and its way back take less than a minute together: a tool has ten seconds.
pub const TIMING: Timing = Timing {
    patience: Duration::from_secs(25),
    pause: Duration::from_secs(1),
};

/// A change that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// What is done.
    pub change: Change,
    /// What undoes it.
    pub undo: Change,
    /// The boot in which it is done: settings of the kernel do not outlive it.
    pub boot_id: String,
    /// Since when.
    pub at: Time,
}

/// Whether the API server answers; the error says what does not.
pub type Reach<'a> = &'a dyn Fn() -> Result<(), String>;

/// Makes the change of `intent` with `act`, and takes it back where it cut the node off. The caller has seen that `reach`
/// succeeds.
pub fn guarded(
    root: &Root,
    intent: &Intent,
    timing: Timing,
    reach: Reach<'_>,
    act: &mut dyn FnMut(&Change) -> Result<(), ExecuteError>,
) -> Result<(), ExecuteError> {
    write_json(root, GUARD_FILE, intent)?;
    let done = act(&intent.change);
    let result = match within(timing, reach) {
        Ok(()) => done,
        Err(seen) => Err(roll_back(intent, &seen, act)),
    };
    // An intent whose way back failed stays: the next start tries it again.
    if !matches!(result, Err(ExecuteError::Stranded { .. })) {
        root.remove(GUARD_FILE).map_err(StoreError::from)?;
    }
    result
}

fn within(timing: Timing, reach: Reach<'_>) -> Result<(), String> {
    let until = Instant::now() + timing.patience;
    loop {
        match reach() {
            Err(seen) if Instant::now() >= until => return Err(seen),
            Err(_) => sleep(timing.pause),
            Ok(()) => return Ok(()),
        }
    }
}

fn roll_back(
    intent: &Intent,
    seen: &str,
    act: &mut dyn FnMut(&Change) -> Result<(), ExecuteError>,
) -> ExecuteError {
    let (what, seen) = (intent.change.place(), seen.to_owned());
    match act(&intent.undo) {
        Ok(()) => ExecuteError::RolledBack { what, seen },
        Err(error) => ExecuteError::Stranded {
            what,
            seen,
            undo: chain(&error),
        },
    }
}

/// Takes back what an earlier process of this boot began and did not see through, counts it as failed, and says what it
/// was.
pub fn recover(
    root: &Root,
    boot_id: &str,
    act: &mut dyn FnMut(&Change) -> Result<(), ExecuteError>,
) -> Result<Option<Intent>, ExecuteError> {
    let Some(intent) = read_json::<Intent>(root, GUARD_FILE)? else {
        return Ok(None);
    };
    if intent.boot_id == boot_id {
        act(&intent.undo)?;
        forget(root, &intent)?;
    }
    root.remove(GUARD_FILE).map_err(StoreError::from)?;
    Ok((intent.boot_id == boot_id).then_some(intent))
}

/// The journal no longer has the change as ours, so that its absence is nobody's doing; the attempts have it as failed.
fn forget(root: &Root, intent: &Intent) -> Result<(), StoreError> {
    let mut journal: Journal = read_json(root, JOURNAL_FILE)?.unwrap_or_default();
    undone(&mut journal, intent);
    write_json(root, JOURNAL_FILE, &journal)?;
    let mut attempts: Attempts = read_json(root, ATTEMPTS_FILE)?.unwrap_or_default();
    let message = "the agent ended before it could see that the API server is still reachable; the change was taken back";
    attempts.end(&intent.change, Some(message));
    write_json(root, ATTEMPTS_FILE, &attempts)?;
    Ok(())
}

/// Notes in the journal that a change was taken back.
pub fn undone(journal: &mut Journal, intent: &Intent) {
    journal.changing(
        &intent.undo,
        &intent.undo,
        &intent.boot_id,
        intent.at.clone(),
    );
}

/// Whether what `change` does may cut this node off.
#[must_use]
pub fn is_needed(change: &Change) -> bool {
    matches!(change, Change::Fabric(fabric) if fabric.cost() != crds::node::Cost::None)
}

#[cfg(test)]
mod tests;
