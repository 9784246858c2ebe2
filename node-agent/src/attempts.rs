//! Attempt budgets: how often an action failed under one install hash, kept across boots in
//! `/var/lib/gpurdma/attempts.json`. Pure; [`crate::apply`] writes the file.
//!
//! An attempt is counted before it runs, so that a crash counts too, and taken back once it is verified: a module must be loaded
//! again at each boot, and that must not use the budget up. What needs a reboot is not verified before it: its attempt
//! counts until another install hash or a reset, so that no host reboots more often than its budget allows. Where the reboot
//! did not bring it, it is given up at once: the next one would bring no more. What outlives a turn, a package manager's run,
//! is one attempt from its start to its judgement; only that it is judged counts nothing.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Attempts that did not end well, and the one that has not ended.
    pub attempts: u32,
    /// When the last one began.
    pub last_at: Time,
    /// What the last one said; empty while it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    /// Whether the last one has not ended, as far as is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// The boot in which it was prepared: its effect comes with the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared_in: Option<String>,
    /// Whether the host has rebooted for it, and nothing has shown since that it is in effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rebooted: bool,
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

    /// Keys of what is prepared and waits for the reboot.
    pub fn prepared_keys(&self) -> impl Iterator<Item = &String> {
        let prepared = |(_, count): &(&String, &Count)| count.prepared_in.is_some();
        self.actions.iter().filter(prepared).map(|(key, _)| key)
    }

    /// Whether only a reboot is missing for `change`.
    #[must_use]
    pub fn is_prepared(&self, change: &Change) -> bool {
        let count = self.actions.get(&change.attempt_key());
        count.is_some_and(|count| count.prepared_in.is_some())
    }

    /// The counts as of the boot `boot_id`: what was prepared in another one has had its reboot, and where it is still
    /// planned, that did not bring it.
    #[must_use]
    pub fn booted(mut self, boot_id: &str) -> Self {
        for count in self.actions.values_mut() {
            if count
                .prepared_in
                .as_deref()
                .is_some_and(|boot| boot != boot_id)
            {
                count.prepared_in = None;
                count.rebooted = true;
                "the host has rebooted, and it is not in effect".clone_into(&mut count.last_error);
            }
        }
        self
    }

    /// Whether the host has rebooted for `change`, and nothing has shown since that it is in effect.
    #[must_use]
    pub fn had_reboot(&self, change: &Change) -> bool {
        let count = self.actions.get(&change.attempt_key());
        count.is_some_and(|count| count.rebooted)
    }

    /// Notes what was seen in effect: the reboot for its place has brought what it was for. The attempt stays counted.
    #[must_use]
    pub fn in_effect(mut self, seen: &BTreeSet<Change>) -> Self {
        let of = |key: &String| {
            let at = |place: String| {
                let rest = key.strip_prefix(&place);
                rest.is_some_and(|rest| rest.starts_with('/'))
            };
            seen.iter().map(Change::place).any(at)
        };
        let counts = self.actions.iter_mut().filter(|(_, count)| count.rebooted);
        for (_, count) in counts.filter(|(key, _)| of(key)) {
            count.rebooted = false;
            count.last_error.clear();
        }
        self
    }

    /// Notes that `change` is prepared and waits for the reboot of this boot.
    pub fn prepared(&mut self, change: &Change, boot_id: &str) {
        if let Some(count) = self.actions.get_mut(&change.attempt_key()) {
            count.prepared_in = Some(boot_id.to_owned());
            count.open = false;
            count.last_error.clear();
        }
    }

    /// Notes that a host that was asked to reboot did not: what was prepared is tried again.
    pub fn not_rebooted(&mut self) {
        for count in self.actions.values_mut() {
            if count.prepared_in.take().is_some() {
                "systemd accepted the reboot and the host did not go down"
                    .clone_into(&mut count.last_error);
            }
        }
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

    /// Whether an attempt of `change` may be under way: one has not ended, or none is counted any more since a reset.
    #[must_use]
    pub fn may_be_open(&self, change: &Change) -> bool {
        let count = self.actions.get(&change.attempt_key());
        count.is_none_or(|count| count.open)
    }

    /// Whether `change` has an attempt left.
    #[must_use]
    pub fn is_left(&self, change: &Change) -> bool {
        self.of(change).0 < BUDGET
    }

    /// Why `change` must not run at `now`.
    #[must_use]
    pub fn blocks(&self, change: &Change, now: Timestamp) -> Option<Blocked> {
        let count = self.actions.get(&change.attempt_key())?;
        if count.prepared_in.is_some() {
            return Some(Blocked::Prepared);
        }
        if count.rebooted {
            return Some(Blocked::NoEffect);
        }
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
                open: true,
                prepared_in: None,
                rebooted: false,
            });
        count.attempts += 1;
        count.open = true;
        count.rebooted = false;
        count.last_at = Time(now);
        "did not end".clone_into(&mut count.last_error);
    }

    /// Goes on with an attempt that is under way; it was counted when it began.
    pub fn go_on(&mut self, change: &Change, now: Timestamp) {
        if !self.actions.contains_key(&change.attempt_key()) {
            self.begin(change, now);
        }
    }

    /// Notes how an attempt ended: one that is verified gives its budget back.
    pub fn end(&mut self, change: &Change, error: Option<&str>) {
        let key = change.attempt_key();
        match (error, self.actions.get_mut(&key)) {
            (None, _) => drop(self.actions.remove(&key)),
            (Some(error), Some(count)) => {
                count.open = false;
                error.clone_into(&mut count.last_error);
            }
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
