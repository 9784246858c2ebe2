//! Attempt budgets: how often an action failed under one install hash, kept across boots in
//! `/var/lib/gpurdma/attempts.json`. Pure; [`crate::apply`] writes the file.
//!
//! An attempt is counted before it runs, so that a crash counts too, and taken back once it is verified: a module must be loaded
//! again at each boot, and that must not use the budget up.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::action::{BUDGET, Blocked, Change};

/// Seconds before the second attempt; doubled for each further one.
const FIRST_WAIT_SECONDS: i64 = 30;

/// The counts of one install hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempts {
    /// The install hash that the counts are for.
    pub install_hash: String,
    /// Value of the reset annotation that was last obeyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// Counts by [`Change::attempt_key`].
    pub actions: BTreeMap<String, Count>,
}

/// Attempts of one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// Attempts that did not end well.
    pub attempts: u32,
    /// When the last one began.
    pub last_at: Time,
    /// What the last one said; empty while it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_error: String,
}

impl Attempts {
    /// The counts that hold for `install_hash` and the reset annotation; `true` where they start anew.
    #[must_use]
    pub fn current(self, install_hash: &str, reset: Option<&str>) -> (Self, bool) {
        let asked = reset.is_some() && self.reset.as_deref() != reset;
        if self.install_hash == install_hash && !asked {
            return (self, false);
        }
        let reset = reset.map(str::to_owned).or(self.reset);
        let fresh = Self {
            install_hash: install_hash.to_owned(),
            reset,
            actions: BTreeMap::new(),
        };
        (fresh, true)
    }

    /// Attempts made of `change` and what the last one said.
    #[must_use]
    pub fn of(&self, change: &Change) -> (u32, Option<String>) {
        let count = self.actions.get(&change.attempt_key());
        let error = count
            .map(|c| c.last_error.clone())
            .filter(|text| !text.is_empty());
        (count.map_or(0, |c| c.attempts), error)
    }

    /// Why `change` must not run at `now`.
    #[must_use]
    pub fn blocks(&self, change: &Change, now: Timestamp) -> Option<Blocked> {
        let count = self.actions.get(&change.attempt_key())?;
        if count.attempts >= BUDGET {
            return Some(Blocked::Exhausted);
        }
        let wait = FIRST_WAIT_SECONDS << count.attempts.saturating_sub(1).min(16);
        let next = count
            .last_at
            .0
            .checked_add(SignedDuration::from_secs(wait))
            .ok()?;
        // A clock that was set back must not hold an action for ever.
        let waits = count.attempts > 0 && now < next && count.last_at.0 <= now;
        waits.then(|| Blocked::Waits(format!("next attempt at {}", seconds(next))))
    }

    /// Counts an attempt that begins now.
    pub fn begin(&mut self, change: &Change, now: Timestamp) {
        let count = self
            .actions
            .entry(change.attempt_key())
            .or_insert_with(|| Count {
                attempts: 0,
                last_at: Time(now),
                last_error: String::new(),
            });
        count.attempts += 1;
        count.last_at = Time(now);
        "did not end".clone_into(&mut count.last_error);
    }

    /// Notes how an attempt ended: one that is verified gives its budget back.
    pub fn end(&mut self, change: &Change, error: Option<&str>) {
        let key = change.attempt_key();
        match (error, self.actions.get_mut(&key)) {
            (None, _) => drop(self.actions.remove(&key)),
            (Some(error), Some(count)) => error.clone_into(&mut count.last_error),
            (Some(_), None) => {}
        }
    }
}

/// Whole seconds are enough for a person.
fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
