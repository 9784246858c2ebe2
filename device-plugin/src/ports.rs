//! Reads port states below `/sys/class/infiniband`. Blocking IO: a NIC whose firmware hangs may hold a read for long, so
//! [`watch`] has a few threads that each take the next RDMA device. Nothing waits for one that hangs: the others are seen
//! as before, and what was seen of it longer than [`STALE`] ago counts as unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use host::root::Root;
use tokio::sync::{mpsc, watch};
use topology::node_file::NodeDevice;

use crate::link::{self, Seen, Sightings};

/// Threads that look at ports in one round; a node may have a thousand virtual functions.
const LANES: usize = 4;

/// How long a sighting counts.
pub const STALE: Duration = Duration::from_secs(5);

/// Looks at one port of an RDMA device; may take for ever.
pub(crate) type Look = Arc<dyn Fn(&str, u32) -> Seen + Send + Sync>;

/// Ports to look at, by RDMA device and port number.
pub type Wanted = BTreeSet<(String, u32)>;

/// The ports of these devices.
pub fn wanted<'a>(devices: impl Iterator<Item = &'a NodeDevice>) -> Wanted {
    let nics = devices.flat_map(|device| &device.nics);
    nics.flat_map(|nic| nic.ports.iter().map(|port| (nic.rdma.clone(), *port)))
        .collect()
}

/// One look at a port. A state that cannot be read says nothing about the port: its device may have moved into a pod's
/// network namespace.
fn look(root: &Root, rdma: &str, port: u32) -> Seen {
    link::port(&host::machine::ports::state(root, rdma, port))
}

/// [`look`] below `root`.
pub(crate) fn looking_at(root: Root) -> Look {
    Arc::new(move |rdma, port| look(&root, rdma, port))
}

/// One look at every port in `wanted`.
#[must_use]
pub fn sweep(root: &Root, wanted: &Wanted) -> Sightings {
    let look = |(rdma, port): &(String, u32)| look(root, rdma, *port);
    wanted.iter().map(|key| (key.clone(), look(key))).collect()
}

/// Looks at the wanted ports every `period` until nobody listens.
pub(crate) async fn watch(
    look: Look,
    period: Duration,
    wanted: watch::Receiver<Arc<Wanted>>,
    sightings: watch::Sender<Arc<Sightings>>,
) {
    let mut watcher = Watcher::new(look);
    while !sightings.is_closed() {
        let ports = wanted.borrow().clone();
        watcher.round(&ports, period).await;
        let now = watcher.started.elapsed();
        sightings.send_replace(Arc::new(current(&watcher.sights, &ports, now)));
        tokio::time::sleep(period).await;
    }
}

/// What one look at an RDMA device showed, and when it began.
#[derive(Clone, Debug)]
struct Sight {
    began: Duration,
    ports: BTreeMap<u32, Seen>,
}

/// What is known of the wanted ports at `now`.
fn current(sights: &BTreeMap<String, Sight>, wanted: &Wanted, now: Duration) -> Sightings {
    let seen = |(rdma, port): &(String, u32)| {
        let sight = sights.get(rdma)?;
        let fresh = now.saturating_sub(sight.began) <= STALE;
        sight.ports.get(port).copied().filter(|_| fresh)
    };
    let known = |key: &(String, u32)| (key.clone(), seen(key).unwrap_or(Seen::Unknown));
    wanted.iter().map(known).collect()
}

/// RDMA devices that are still to be looked at, the next one last.
type Queue = Arc<Mutex<Vec<(String, Vec<u32>)>>>;

fn lock(queue: &Queue) -> MutexGuard<'_, Vec<(String, Vec<u32>)>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next(queue: &Queue) -> Option<(String, Vec<u32>)> {
    lock(queue).pop()
}

/// The looks under way, at most one for each RDMA device.
struct Watcher {
    look: Look,
    started: Instant,
    queue: Queue,
    under_way: BTreeSet<String>,
    tell: mpsc::UnboundedSender<(String, Sight)>,
    told: mpsc::UnboundedReceiver<(String, Sight)>,
    sights: BTreeMap<String, Sight>,
}

impl Watcher {
    fn new(look: Look) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Self {
            look,
            started: Instant::now(),
            queue: Queue::default(),
            under_way: BTreeSet::new(),
            tell,
            told,
            sights: BTreeMap::new(),
        }
    }

    /// One look at every device of which none is under way, for which `patience` is waited.
    async fn round(&mut self, wanted: &Wanted, patience: Duration) {
        let mut devices: BTreeMap<&String, Vec<u32>> = BTreeMap::new();
        for (rdma, port) in wanted {
            devices.entry(rdma).or_default().push(*port);
        }
        self.sights.retain(|rdma, _| devices.contains_key(rdma));
        devices.retain(|rdma, _| !self.under_way.contains(*rdma));
        let begun: BTreeSet<String> = devices.keys().map(|rdma| (*rdma).clone()).collect();
        self.under_way.extend(begun.iter().cloned());
        let queue = devices.into_iter().rev();
        *lock(&self.queue) = queue.map(|(rdma, ports)| (rdma.clone(), ports)).collect();
        for _ in 0..LANES.min(begun.len()) {
            self.begin();
        }
        // Whoever does not answer in time is asked for in a later round.
        let _ = tokio::time::timeout(patience, self.collect(&begun)).await;
        for (rdma, _) in lock(&self.queue).drain(..) {
            self.under_way.remove(&rdma);
        }
    }

    /// A thread that looks at one device after the other. One that hangs stays behind with its device.
    fn begin(&self) {
        let (look, queue, tell) = (self.look.clone(), self.queue.clone(), self.tell.clone());
        let started = self.started;
        tokio::task::spawn_blocking(move || {
            while let Some((rdma, ports)) = next(&queue) {
                let began = started.elapsed();
                let ports = ports.into_iter().map(|port| (port, look(&rdma, port)));
                let ports = ports.collect();
                if tell.send((rdma, Sight { began, ports })).is_err() {
                    return;
                }
            }
        });
    }

    /// Takes results in until those of `begun` are there.
    async fn collect(&mut self, begun: &BTreeSet<String>) {
        while !self.under_way.is_disjoint(begun) {
            let Some((rdma, sight)) = self.told.recv().await else {
                return;
            };
            self.under_way.remove(&rdma);
            self.sights.insert(rdma, sight);
        }
    }
}

#[cfg(test)]
mod tests;
