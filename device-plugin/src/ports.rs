//! Reads port states below `/sys/class/infiniband`. Blocking IO: a NIC whose firmware hangs may hold a read for long,
//! so [`watch`] does it on a thread of its own and nothing else waits for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use host::root::Root;
use tokio::sync::watch;
use topology::node_file::NodeDevice;

use crate::link::{self, Sightings};

/// Ports to look at, by RDMA device and port number.
pub type Wanted = BTreeSet<(String, u32)>;

/// The ports of these devices.
pub fn wanted<'a>(devices: impl Iterator<Item = &'a NodeDevice>) -> Wanted {
    let nics = devices.flat_map(|device| &device.nics);
    nics.flat_map(|nic| nic.ports.iter().map(|port| (nic.rdma.clone(), *port)))
        .collect()
}

/// One look at every port in `wanted`. A state that cannot be read says nothing about the port: its device may have
/// moved into a pod's network namespace.
#[must_use]
pub fn sweep(root: &Root, wanted: &Wanted) -> Sightings {
    let look =
        |(rdma, port): &(String, u32)| link::port(&host::machine::ports::state(root, rdma, *port));
    wanted.iter().map(|key| (key.clone(), look(key))).collect()
}

/// Looks at the wanted ports every `period` until nobody listens.
pub(crate) async fn watch(
    root: Root,
    period: Duration,
    wanted: watch::Receiver<Arc<Wanted>>,
    sightings: watch::Sender<Arc<Sightings>>,
) {
    while !sightings.is_closed() {
        let (root, ports) = (root.clone(), wanted.borrow().clone());
        let Ok(seen) = tokio::task::spawn_blocking(move || sweep(&root, &ports)).await else {
            return;
        };
        sightings.send_replace(Arc::new(seen));
        tokio::time::sleep(period).await;
    }
}

#[cfg(test)]
mod tests;
