//! `device-plugin serve`: puts the tasks together and takes them down again.
//!
//! ports ─sightings→ keeper ─snapshots→ one [`Session`] per resource (its own socket and server).
//! One thread is enough: nothing here blocks it, and the kubelet's call back during Register is answered while that call
//! waits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::root::Root;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::accept::Source;
use crate::keeper::{Keeper, Wires};
use crate::link::Sightings;
use crate::owners::Owners;
use crate::ports::{self, Wanted};
use crate::pulse::pulse;
use crate::resource::Snapshot;
use crate::session::{Session, Shared};
use crate::timing::Timing;
use crate::{endpoint, instance};

/// Where things are.
#[derive(Clone, Debug)]
pub struct Options {
    /// The node file and the host's boot id.
    pub source: Source,
    /// The kubelet's device-plugins directory.
    pub kubelet_dir: PathBuf,
    /// What holds `/sys`.
    pub root: Root,
    /// The host's `/dev`, where it is mounted: optional device nodes that are not there are left out.
    pub dev: Option<PathBuf>,
    /// Waits.
    pub timing: Timing,
}

/// Serves until `shutdown` is done, then closes every server and removes its socket. No empty list is sent: the kubelet
/// keeps the devices of running pods, and the next plugin finds them as they were.
pub async fn serve(options: Options, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    let lock = tokio::select! {
        lock = instance::become_only(&options.kubelet_dir, options.timing.poll) => lock,
        () = &mut shutdown => return,
    };
    endpoint::remove_stale(&options.kubelet_dir);
    let shared = start(&options);
    let (stop, stopping) = watch::channel(false);
    let supervisor = supervise(shared, stopping);
    tokio::pin!(supervisor);
    tokio::select! {
        () = &mut supervisor => {}
        () = &mut shutdown => {
            stop.send_replace(true);
            supervisor.await;
        }
    }
    drop(lock);
}

/// Starts the ports' and the keeper's tasks.
fn start(options: &Options) -> Shared {
    let timing = options.timing;
    let (sighting, sightings) = watch::channel(Arc::new(Sightings::new()));
    let (want, wanted) = watch::channel(Arc::new(Wanted::new()));
    let (snapshot, snapshots) = watch::channel(Arc::new(Snapshot::default()));
    let node_dir = options
        .source
        .node_file
        .parent()
        .unwrap_or(Path::new("/"))
        .to_owned();
    let wires = Wires {
        pulses: pulse(node_dir, timing.poll),
        sightings,
        wanted: want,
        snapshots: snapshot,
    };
    tokio::spawn(ports::watch(
        ports::looking_at(options.root.clone()),
        timing.ports,
        wanted,
        sighting,
    ));
    let owners = Arc::new(Owners::new(options.root.clone()));
    let keeper = Keeper::new(options.source.clone(), owners.clone(), timing.quiet, wires);
    tokio::spawn(keeper.run());
    Shared {
        dir: options.kubelet_dir.clone(),
        dev: options.dev.clone(),
        owners,
        timing,
        snapshots,
        pulses: pulse(options.kubelet_dir.clone(), timing.poll),
    }
}

/// A session and how to end it.
struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// One session per resource of the snapshot, until stopped.
async fn supervise(shared: Shared, mut stopping: watch::Receiver<bool>) {
    let mut snapshots = shared.snapshots.clone();
    let mut running: BTreeMap<String, Running> = BTreeMap::new();
    while !*stopping.borrow_and_update() {
        let current = snapshots.borrow_and_update().clone();
        let (keep, gone) = std::mem::take(&mut running)
            .into_iter()
            .partition(|(name, _)| current.resources.contains_key(name));
        running = keep;
        end(gone).await;
        for name in current.resources.keys() {
            running
                .entry(name.clone())
                .or_insert_with(|| begin(name, &shared));
        }
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { break },
            _ = stopping.changed() => {}
        }
    }
    end(running).await;
}

fn begin(name: &str, shared: &Shared) -> Running {
    let (stop, stopped) = watch::channel(false);
    let session = Session::new(name.to_owned(), shared.clone(), stopped);
    Running {
        stop,
        task: tokio::spawn(session.run()),
    }
}

/// Ends sessions side by side.
async fn end(sessions: BTreeMap<String, Running>) {
    for running in sessions.values() {
        running.stop.send_replace(true);
    }
    for (resource, running) in sessions {
        if let Err(error) = running.task.await {
            tracing::error!(resource, %error, "session ended badly");
        }
    }
}
