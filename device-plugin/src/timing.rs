//! How long things wait.

use std::time::Duration;

/// The plugin's clockwork; tests shorten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Longest time until a file change is seen where inotify does not tell.
    pub poll: Duration,
    /// Time between two looks at the ports.
    pub ports: Duration,
    /// How long the kubelet may be without a stream before the resource is registered again.
    pub stream_grace: Duration,
    /// First pause after a failed registration; it doubles from there.
    pub retry_min: Duration,
    /// Longest pause between two registrations.
    pub retry_max: Duration,
    /// How long one registration may take; the kubelet itself gives up after 10 s.
    pub register_limit: Duration,
    /// How long open streams may take to end when a server closes.
    pub close_limit: Duration,
    /// How long a device that left the node file stays in the list.
    pub quiet: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(1),
            ports: Duration::from_secs(1),
            stream_grace: Duration::from_secs(3),
            // A socket of the kubelet has its name a moment before anybody listens on it.
            retry_min: Duration::from_millis(2),
            retry_max: Duration::from_secs(10),
            register_limit: Duration::from_secs(15),
            close_limit: Duration::from_secs(1),
            quiet: Duration::from_mins(5),
        }
    }
}

/// Pauses that double from the shortest to the longest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self {
            min: timing.retry_min,
            max: timing.retry_max,
            next: timing.retry_min,
        }
    }

    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.max);
        pause
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests;
