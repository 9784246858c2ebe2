//! Notices between two turns that something changed, by comparing glances ([`host::machine::glance`]). Called by [`crate::run`].

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use host::facts::{Facts, RECORDED};
use host::machine::glance::Glance;
use host::root::Root;
use tokio::sync::watch;

use crate::gather::chain;
use crate::reader::Reader;
use crate::settings::{RUN_DIR, STATE_DIR, Settings};

/// Time between two looks at the devices.
pub const PERIOD: Duration = Duration::from_secs(1);

/// How long a look at the settings may take, and how long one at the devices takes before it counts as hanging.
const DEADLINE: Duration = Duration::from_secs(5);

/// Files and folders with what others set and what we wrote; those of CDI specifications come from the settings.
const PLACES: [&str; 6] = [
    "/etc/infiniband",
    "/etc/modprobe.d",
    "/etc/nccl.conf",
    RUN_DIR,
    STATE_DIR,
    RECORDED,
];

/// Looks at the RDMA devices on a thread of its own, which wakes nobody while nothing changes: a read that hangs in a NIC's
/// firmware holds nothing else up. The thread ends after this value does.
#[derive(Debug)]
pub struct Devices {
    known: watch::Sender<Arc<Facts>>,
    looks: watch::Receiver<Instant>,
}

impl Devices {
    /// Looks below `root` every `period`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn watch(root: Root, period: Duration) -> std::io::Result<Self> {
        let (known, facts) = watch::channel(Arc::<Facts>::default());
        let (look, looks) = watch::channel(Instant::now());
        let work = move || {
            let mut last: Option<Glance> = None;
            while facts.has_changed().is_ok() {
                let known = facts.borrow().clone();
                let now = Glance::devices(&root, &known.machine);
                let changed = last.as_ref().is_some_and(|last| *last != now);
                last = Some(now);
                look.send_if_modified(|at| {
                    *at = Instant::now();
                    changed
                });
                thread::sleep(period);
            }
        };
        thread::Builder::new().name("glance".into()).spawn(work)?;
        Ok(Self { known, looks })
    }

    /// The facts of the last turn: they say which ports there are.
    pub fn expect(&self, facts: Arc<Facts>) {
        self.known.send_replace(facts);
    }

    /// Waits until devices are others, or their ports in another state, than at the look before.
    pub async fn changed(&mut self) {
        if self.looks.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether a look does not come to its end.
    #[must_use]
    pub fn hang(&self) -> bool {
        self.looks.borrow().elapsed() > DEADLINE
    }
}

/// What was seen last of the host's settings.
#[derive(Debug, Default)]
pub struct HostSettings {
    reader: Reader<Glance>,
    last: Option<Glance>,
}

impl HostSettings {
    /// Whether they are others than at the last look. The first look has nothing to compare with, and one that hangs tells
    /// nothing: the turn says so.
    pub async fn changed(&mut self, settings: &Settings, facts: Arc<Facts>) -> bool {
        let root = settings.root.clone();
        let places = settings.cdi_dirs().into_iter().chain(PLACES);
        let places: Vec<String> = places.map(str::to_owned).collect();
        let look = move || {
            let places = places.iter().map(String::as_str);
            Glance::settings(&root, &facts.machine, places)
        };
        match self.reader.read(DEADLINE, look).await {
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
