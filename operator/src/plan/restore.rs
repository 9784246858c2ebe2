//! The nodes of a deleted cluster whose `deletionPolicy` is Restore: their agents plan the way back from their journals,
//! costly parts wait for a grant like any other plan, and a node is let go once nothing is left to take back. Pure.
//!
//! A node that another cluster takes over meanwhile is that cluster's business: nothing is taken back there. A person
//! who does not want to wait sets `deletionPolicy: Retain`, which may be done while the cluster is being deleted.

use crds::cluster::{DeletionPolicy, Mode};
use crds::{GpuRdmaNode, GpuRdmaNodeSpec};
use kube::ResourceExt;

use super::{Changes, World, differs, gpu_node, policy};
use crate::facts::NodeFacts;
use crate::gather::Snapshot;
use crate::network::Given;
use crate::rollout::{self, Policy, Record};
use crate::validate::Cluster;
use crate::views;

pub(super) fn restore(world: &World<'_>, cluster: &Cluster, changes: &mut Changes) {
    let nodes: Vec<&str> = restoring(world, cluster).collect();
    for name in &nodes {
        let Some(facts) = world.snapshot.nodes.get(*name) else {
            continue;
        };
        let wanted = way_back(cluster, name, facts, world.snapshot.given(name));
        let now = world.snapshot.gpu_nodes.get(*name);
        if now.is_none_or(|now| differs(now, &wanted)) {
            changes.gpu_nodes.push(wanted);
        }
    }
    let policy = Policy {
        mode: Mode::Enforce,
        ..policy(cluster, nodes.len(), world.now)
    };
    // A cluster on its way out has no driver container of its own any more.
    let bare = Cluster {
        driver: None,
        ..cluster.clone()
    };
    let views = views::views(
        world.snapshot,
        world.validated,
        &bare,
        None,
        nodes.into_iter(),
    );
    let views: Vec<_> = views.into_iter().map(views::without_driver).collect();
    changes.maintenance.extend(rollout::decide(&policy, &views));
}

/// The object whose agent is to take back what it changed. Its addresses are the node's until then.
fn way_back(cluster: &Cluster, name: &str, facts: &NodeFacts, given: Given) -> GpuRdmaNode {
    let mut object = gpu_node(cluster, name, facts, given);
    object.spec = GpuRdmaNodeSpec {
        mode: Mode::Enforce,
        restore: true,
        ..object.spec
    };
    object
}

fn restoring<'a>(world: &'a World<'_>, cluster: &'a Cluster) -> impl Iterator<Item = &'a str> {
    let left = world.assignments.released.iter();
    left.filter(|(node, by)| **by == cluster.name && is_held(world, node))
        .map(|(node, _)| node.as_str())
}

/// Whether a node that nobody has is kept until its host is as it was.
pub(super) fn is_held(world: &World<'_>, node: &str) -> bool {
    let left = world.assignments.released.get(node);
    let cluster = left.and_then(|name| world.validated.get(name));
    let object = world.snapshot.gpu_nodes.get(node);
    cluster.is_some_and(wants_restore)
        && object.is_some_and(|object| !is_restored(world.snapshot, object))
}

fn wants_restore(cluster: &Cluster) -> bool {
    cluster.deleting && cluster.deletion_policy == DeletionPolicy::Restore
}

/// An agent that never reported changed nothing for this object; any other one must have said, about the way back, that
/// nothing is left of it.
fn is_restored(snapshot: &Snapshot, object: &GpuRdmaNode) -> bool {
    let Some(status) = &object.status else {
        return true;
    };
    let tainted = snapshot
        .nodes
        .get(&object.name_any())
        .is_some_and(|node| node.tainted);
    let done = object.spec.restore && views::is_fresh(object) && status.plan.is_none();
    done && !tainted && object.spec.maintenance.is_none()
}

/// Whether agents still work for a cluster that is being deleted.
pub(super) fn lingers(snapshot: &Snapshot, cluster: &Cluster) -> bool {
    let mut nodes = snapshot.gpu_nodes.values();
    nodes.any(|object| {
        let busy = object.spec.maintenance.is_some()
            || (Record::of(object).revoked.is_some() && !views::is_fresh(object));
        let restores = wants_restore(cluster) && !is_restored(snapshot, object);
        object.spec.cluster == cluster.name && (busy || restores)
    })
}

#[cfg(test)]
mod tests;
