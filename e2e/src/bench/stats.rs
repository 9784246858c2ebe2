//! What many measurements of one thing come to. Pure.

use std::time::Duration;

use serde::Serialize;

/// Times of one thing.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

/// What they come to, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub count: usize,
    /// Half of them took no longer.
    pub p50: f64,
    /// Ninety-nine of a hundred took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Samples {
    /// One more.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What they come to; nothing where there is none.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |percent| Some(milliseconds(*sorted.get(rank(sorted.len(), percent)?)?));
        Some(Summary {
            count: sorted.len(),
            p50: at(50)?,
            p99: at(99)?,
            max: at(100)?,
        })
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        Self(times.into_iter().collect())
    }
}

/// A time in milliseconds.
#[must_use]
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Position of a percentile by the nearest-rank rule: the smallest sample that so many percent do not exceed.
fn rank(count: usize, percent: usize) -> Option<usize> {
    (count * percent)
        .div_ceil(100)
        .max(1)
        .checked_sub(1)
        .filter(|at| *at < count)
}

#[cfg(test)]
mod tests;
