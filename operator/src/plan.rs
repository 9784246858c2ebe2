//! What has to change for one cluster. Pure and infallible: validated clusters, assignments and the snapshot in,
//! [`Changes`] out. Equal worlds give empty changes.

use std::collections::BTreeMap;

use crds::cluster::Mode;
use crds::names::PLUGIN_LABEL;
use crds::node::{GpuPlugin, NodeConfig};
use crds::{GpuRdmaNode, GpuRdmaNodeSpec};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::assign::Assignments;
use crate::components::{self, Inputs, template_hash};
use crate::config::Config;
use crate::facts::NodeFacts;
use crate::gather::{SELECTOR_ANNOTATION, Snapshot};
use crate::network::{Given, Network, network};
use crate::rollout::{self, Decision, Policy};
use crate::takeover::{self, Step, Switch};
use crate::validate::{Cluster, Validated};
use crate::views;

mod daemon_sets;
mod leave;
mod restore;

pub use daemon_sets::Prune;

/// Label of a `GpuRdmaNode`: its cluster, for `kubectl get -l`.
pub const CLUSTER_LABEL: &str = "gpurdma.dev/cluster";

/// Where the operator runs and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The operator's namespace.
    pub namespace: &'a str,
    /// Its configuration.
    pub config: &'a Config,
}

/// Labels to change: a value to set, none to remove.
pub type Labels = BTreeMap<&'static str, Option<String>>;

/// Labels of one node: a value to set, none to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelChange {
    /// The node.
    pub node: String,
    /// The labels.
    pub labels: Labels,
}

/// What has to change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// DaemonSets to apply.
    pub daemon_sets: Vec<DaemonSet>,
    /// DaemonSets to delete.
    pub prune: Vec<Prune>,
    /// `GpuRdmaNodes` to apply.
    pub gpu_nodes: Vec<GpuRdmaNode>,
    /// Node labels to change.
    pub labels: Vec<LabelChange>,
    /// Other device plugins to switch off or on.
    pub switches: Vec<Switch>,
    /// Nodes that left and still have our taint.
    pub untaint: Vec<String>,
    /// `GpuRdmaNodes` of nodes that left.
    pub forget: Vec<String>,
    /// Maintenance of the cluster's nodes.
    pub maintenance: Vec<Decision>,
    /// Where nodes stand whose GPUs another device plugin has or had: what is to be done is in `switches`.
    pub takeover: BTreeMap<String, takeover::Standing>,
    /// Rails and addresses of a living cluster's nodes: what of them is new is in `gpu_nodes`.
    pub network: Option<Network>,
}

impl Changes {
    /// Whether nothing has to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            daemon_sets,
            prune,
            gpu_nodes,
            labels,
            switches,
            untaint,
            forget,
            maintenance,
            takeover: _,
            network: _,
        } = self;
        daemon_sets.is_empty()
            && prune.is_empty()
            && gpu_nodes.is_empty()
            && labels.is_empty()
            && switches.is_empty()
            && untaint.is_empty()
            && forget.is_empty()
            && maintenance.iter().all(Decision::is_empty)
    }
}

impl Changes {
    /// Whether there is nothing left to let go of. DaemonSets to apply and objects to write are for those that stay:
    /// whatever keeps them from settling must not keep a deleted cluster.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        let Self {
            daemon_sets: _,
            prune,
            gpu_nodes: _,
            labels,
            switches,
            untaint,
            forget,
            maintenance,
            takeover,
            network: _,
        } = self;
        prune.is_empty()
            && labels.is_empty()
            && switches.is_empty()
            && takeover.is_empty()
            && untaint.is_empty()
            && forget.is_empty()
            && maintenance.is_empty()
    }
}

/// What has to change for the cluster called `name`, which may be on its way out, at `now`.
#[must_use]
pub fn plan(
    snapshot: &Snapshot,
    validated: &Validated,
    assignments: &Assignments,
    settings: Settings<'_>,
    name: &str,
    now: Timestamp,
) -> Changes {
    let mut changes = Changes::default();
    if snapshot.suspicious() {
        return changes;
    }
    let living: Vec<_> = validated.living().collect();
    let plugin_wanted = daemon_sets::plugin_wanted(snapshot, &living);
    let Settings { namespace, config } = settings;
    let desired = components::daemon_sets(&Inputs {
        namespace,
        config,
        clusters: &living,
        kept: &daemon_sets::kept(snapshot, validated),
        plugin_wanted,
    });
    daemon_sets::diff(snapshot, validated, &desired, &mut changes);
    let world = World {
        snapshot,
        validated,
        assignments,
        now,
    };
    leave::clean(&world, name, &mut changes);
    match validated.get(name) {
        Some(cluster) if cluster.deleting => restore::restore(&world, cluster, &mut changes),
        Some(cluster) => {
            let members: Vec<_> = assignments.nodes_of(name).collect();
            let network = network(snapshot, cluster, &members);
            join(snapshot, cluster, &members, &network, &mut changes);
            changes.network = Some(network);
            let mut decisions = maintenance(&world, cluster, &desired, &members);
            changes.maintenance.append(&mut decisions);
        }
        None => {}
    }
    changes
}

/// What the parts of a plan look at.
#[derive(Clone, Copy)]
struct World<'a> {
    snapshot: &'a Snapshot,
    validated: &'a Validated,
    assignments: &'a Assignments,
    now: Timestamp,
}

fn join(
    snapshot: &Snapshot,
    cluster: &Cluster,
    members: &[&str],
    network: &Network,
    changes: &mut Changes,
) {
    let views: Vec<_> = members
        .iter()
        .filter_map(|name| takeover_view(snapshot, name))
        .collect();
    let mut takeover = takeover::members(cluster, &views);
    for name in members {
        let Some(facts) = snapshot.nodes.get(*name) else {
            continue;
        };
        let step = takeover.remove(*name).unwrap_or_default();
        let existing = snapshot.gpu_nodes.get(*name).map(AsRef::as_ref);
        let given = network.given.get(*name).cloned().unwrap_or_default();
        let mut desired = gpu_node(cluster, name, facts, given);
        desired.spec.gpu_plugin = step.told;
        if existing.is_none_or(|existing| differs(existing, &desired)) {
            changes.gpu_nodes.push(desired);
        }
        if let Some(labels) = plugin_label(cluster, existing, facts, step.plugin_leaves) {
            changes.labels.push(LabelChange {
                node: (*name).to_owned(),
                labels,
            });
        }
        changes.note(name, step);
    }
}

impl Changes {
    /// Takes over what is to be done with the other device plugin of a node.
    fn note(&mut self, node: &str, step: Step) {
        self.switches.extend(step.switch);
        let standing = step.standing.map(|standing| (node.to_owned(), standing));
        self.takeover.extend(standing);
    }
}

fn takeover_view<'a>(snapshot: &'a Snapshot, name: &'a str) -> Option<takeover::View<'a>> {
    Some(takeover::View {
        name,
        facts: snapshot.nodes.get(name)?,
        object: snapshot.gpu_nodes.get(name).map(AsRef::as_ref),
        pods: snapshot
            .pods
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default(),
    })
}

/// The `GpuRdmaNode` as the assignment writes it: everything but `spec.maintenance`.
fn gpu_node(cluster: &Cluster, name: &str, facts: &NodeFacts, given: Given) -> GpuRdmaNode {
    let Given { rails, addresses } = given;
    let spec = GpuRdmaNodeSpec {
        cluster: cluster.name.clone(),
        node_uid: facts.uid.clone(),
        mode: cluster.mode,
        paused: cluster.paused,
        install_hash: cluster.install_hash.clone(),
        restore: false,
        gpu_plugin: GpuPlugin::AsFound,
        config: NodeConfig {
            rails,
            addresses,
            ..cluster.config.clone()
        },
        maintenance: None,
    };
    let mut object = GpuRdmaNode::new(name, spec);
    object.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.to_owned(),
        uid: facts.uid.clone(),
        ..OwnerReference::default()
    }]);
    object.metadata.labels = Some(BTreeMap::from([(
        CLUSTER_LABEL.to_owned(),
        cluster.name.clone(),
    )]));
    object.metadata.annotations = Some(BTreeMap::from([(
        SELECTOR_ANNOTATION.to_owned(),
        cluster.selector_text(),
    )]));
    object
}

fn differs(existing: &GpuRdmaNode, desired: &GpuRdmaNode) -> bool {
    let without_grant = GpuRdmaNodeSpec {
        maintenance: None,
        ..existing.spec.clone()
    };
    let owned = desired
        .owner_references()
        .iter()
        .all(|owner| existing.owner_references().contains(owner));
    let label = |node: &GpuRdmaNode| node.labels().get(CLUSTER_LABEL).cloned();
    let selector = |node: &GpuRdmaNode| node.annotations().get(SELECTOR_ANNOTATION).cloned();
    without_grant != desired.spec
        || !owned
        || label(existing) != label(desired)
        || selector(existing) != selector(desired)
}

/// The change of the plugin's label, if any. Paused keeps what is there; a node gets the plugin once its agent has
/// reported hardware for it, and keeps one that it has, unless it `leaves` for another device plugin.
fn plugin_label(
    cluster: &Cluster,
    existing: Option<&GpuRdmaNode>,
    facts: &NodeFacts,
    leaves: bool,
) -> Option<Labels> {
    let now = facts.labels.get(PLUGIN_LABEL).map(String::as_str);
    let applicable = existing.is_some_and(views::is_applicable);
    if leaves {
        return now.map(|_| Labels::from([(PLUGIN_LABEL, None)]));
    }
    match (cluster.paused, cluster.mode, now) {
        (true, _, _)
        | (false, Mode::Enforce, Some("true"))
        | (false, Mode::Observe | Mode::Plan, None) => None,
        (false, Mode::Enforce, None) if !applicable => None,
        (false, Mode::Enforce, _) => Some(Labels::from([(PLUGIN_LABEL, Some("true".to_owned()))])),
        (false, Mode::Observe | Mode::Plan, Some(_)) => Some(Labels::from([(PLUGIN_LABEL, None)])),
    }
}

fn maintenance(
    world: &World<'_>,
    cluster: &Cluster,
    desired: &[DaemonSet],
    members: &[&str],
) -> Vec<Decision> {
    let driver = components::driver_name(&cluster.name);
    let set = desired.iter().find(|set| set.name_any() == driver);
    let mut views = views::views(
        world.snapshot,
        world.validated,
        cluster,
        set.and_then(template_hash),
        members.iter().copied(),
    );
    views.extend(leave::draining(world, cluster));
    rollout::decide(&policy(cluster, members.len(), world.now), &views)
}

fn policy(cluster: &Cluster, members: usize, now: Timestamp) -> Policy {
    // Validation refused what has no slots; one at a time is the careful answer.
    let slots = rollout::slots(&cluster.upgrade.max_unavailable, members).unwrap_or(1);
    Policy {
        mode: cluster.mode,
        paused: cluster.paused,
        slots,
        workloads: cluster.upgrade.workloads,
        wait_timeout: cluster.wait_timeout,
        now: Timestamp::from_second(now.as_second()).unwrap_or(now),
    }
}

#[cfg(test)]
pub(crate) mod tests;
