//! Delay before the next try, per object: doubled by each failure in a row, forgotten on success.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const LONGEST: Duration = Duration::from_mins(5);

/// Failures in a row, by object name.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: Mutex<HashMap<String, u32>>,
}

impl Backoff {
    /// Counts a failure and says how long to wait.
    pub fn failed(&self, object: &str, first: Duration) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(object.to_owned()).or_insert(0);
        let wait = delay(first, *count);
        *count = count.saturating_add(1);
        wait
    }

    /// Forgets the failures of an object.
    pub fn succeeded(&self, object: &str) {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(object);
    }
}

/// `first` doubled `failures` times, at most five minutes.
#[must_use]
pub fn delay(first: Duration, failures: u32) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(LONGEST)
}

#[cfg(test)]
mod tests;
