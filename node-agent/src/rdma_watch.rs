//! Notices that RDMA devices came, went or came back, between two turns. Called by [`crate::run`] every second.
//!
//! sysfs tells no inotify watch of devices that come and go, and the agent's uevents would be those of its own network
//! namespace; listing three directories costs less than either would.

use std::time::Duration;

use host::machine::verbs::{RdmaTrace, trace};
use host::root::Root;

use crate::gather::chain;
use crate::reader::Reader;

/// Time between two looks.
pub const PERIOD: Duration = Duration::from_secs(1);

/// What was seen last.
#[derive(Debug, Default)]
pub struct RdmaWatch {
    reader: Reader<RdmaTrace>,
    last: Option<RdmaTrace>,
}

impl RdmaWatch {
    /// Whether the RDMA devices are others than at the last look. The first look has nothing to compare with, and one that
    /// hangs tells nothing: the turn says so.
    pub async fn changed(&mut self, root: &Root) -> bool {
        let root = root.clone();
        match self.reader.read(PERIOD, move || trace(&root)).await {
            Ok(now) => {
                let before = self.last.replace(now);
                before.is_some_and(|before| self.last.as_ref() != Some(&before))
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "look at the RDMA devices");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
