//! Notices between two turns that something changed, by comparing glances ([`host::machine::glance`]). Called by [`crate::run`].

use std::sync::Arc;
use std::time::Duration;

use host::facts::{Facts, RECORDED};
use host::machine::glance::Glance;

use crate::gather::chain;
use crate::reader::Reader;
use crate::settings::{RUN_DIR, STATE_DIR, Settings};

/// Time between two glances at the devices, and how long a glance may take.
pub const PERIOD: Duration = Duration::from_secs(1);

/// Files and folders with what others set and what we wrote.
const PLACES: [&str; 8] = [
    "/etc/infiniband",
    "/etc/modprobe.d",
    "/etc/cdi",
    "/var/run/cdi",
    "/etc/nccl.conf",
    RUN_DIR,
    STATE_DIR,
    RECORDED,
];

/// What was seen last.
#[derive(Debug, Default)]
pub struct Watch {
    reader: Reader<Glance>,
    last: Option<Glance>,
}

impl Watch {
    /// Whether the devices of the last turn's `facts` are others, or their ports in another state, than at the last look.
    pub async fn devices_changed(&mut self, settings: &Settings, facts: Arc<Facts>) -> bool {
        let root = settings.root.clone();
        self.changed(move || Glance::devices(&root, &facts.machine))
            .await
    }

    /// Whether the host's settings are others than at the last look.
    pub async fn settings_changed(&mut self, settings: &Settings, facts: Arc<Facts>) -> bool {
        let (root, cdi) = (settings.root.clone(), settings.cdi_dir.clone());
        let look = move || {
            let places = PLACES.into_iter().chain([cdi.as_str()]);
            Glance::settings(&root, &facts.machine, places)
        };
        self.changed(look).await
    }

    /// The first look has nothing to compare with, and one that hangs tells nothing: the turn says so.
    async fn changed(&mut self, look: impl FnOnce() -> Glance + Send + 'static) -> bool {
        match self.reader.read(PERIOD, look).await {
            Ok(now) => {
                let before = self.last.replace(now);
                before.is_some_and(|before| self.last.as_ref() != Some(&before))
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "look at the host");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
