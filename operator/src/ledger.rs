//! What was decided about rails and addresses and may not be in the caches yet. [`Ledger::overlay`] lays it over a snapshot,
//! [`Ledger::note`] is called before anything is written. In memory only: a new leader begins with full caches.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crds::cluster::RailLayout;
use kube::ResourceExt;

use crate::gather::Snapshot;
use crate::network::Given;
use crate::plan::Changes;

/// What was decided for a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// `metadata.uid` of the Node: a namesake begins anew.
    pub node_uid: String,
    /// What it was given.
    pub given: Given,
}

/// What was decided and is not shown yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// By node.
    pub given: BTreeMap<String, Noted>,
    /// Layouts by the uid of the cluster. They stay: nobody else writes them.
    pub layouts: BTreeMap<String, Vec<RailLayout>>,
}

/// What one leader decided.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Pending>);

impl Ledger {
    /// The same world with what is pending in it. What the caches show by now is forgotten, and so is what became of nodes
    /// and clusters that are gone.
    #[must_use]
    pub fn overlay(&self, mut snapshot: Snapshot) -> Snapshot {
        let mut pending = self.lock();
        if !snapshot.suspicious() {
            pending
                .given
                .retain(|node, noted| waits(&snapshot, node, noted));
        }
        snapshot.pending = pending.clone();
        snapshot
    }

    /// Notes what is about to be written for a cluster.
    pub fn note(&self, cluster_uid: Option<String>, changes: &Changes) {
        let mut pending = self.lock();
        for object in &changes.gpu_nodes {
            let noted = Noted {
                node_uid: object.spec.node_uid.clone(),
                given: Given::of(object),
            };
            pending.given.insert(object.name_any(), noted);
        }
        for node in &changes.forget {
            pending.given.remove(node);
        }
        if let (Some(uid), Some(network)) = (cluster_uid, &changes.network) {
            pending.layouts.insert(uid, network.layouts.clone());
        }
    }

    /// Forgets a cluster that is gone.
    pub fn forget(&self, cluster_uid: Option<&str>) {
        if let Some(uid) = cluster_uid {
            self.lock().layouts.remove(uid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the caches do not show it yet.
fn waits(snapshot: &Snapshot, node: &str, noted: &Noted) -> bool {
    let same = |uid: &String| *uid == noted.node_uid;
    let there = snapshot
        .nodes
        .get(node)
        .is_some_and(|facts| same(&facts.uid));
    let shown = snapshot
        .gpu_nodes
        .get(node)
        .is_some_and(|object| same(&object.spec.node_uid) && Given::of(object) == noted.given);
    (there || snapshot.skipped.contains(node)) && !shown
}

#[cfg(test)]
mod tests;
