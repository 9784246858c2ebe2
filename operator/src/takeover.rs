//! Nodes whose GPUs another device plugin hands out: when it is switched off there, and when it comes back. Pure.
//!
//! That plugin is NVIDIA's, deployed by its gpu-operator, which has one label per node for it. The label moves one node
//! after the other, and only on a node that could use what comes after it. Under the name that the other plugin has, a
//! node changes with its pods: kubelet and pods keep their devices, whose ids are the same UUIDs. Under another name one
//! GPU would have two owners, so only a node without such pods changes; nobody is evicted for it.
//!
//! On the way back our plugin leaves the node first: the kubelet calls every device of a resource unhealthy when one of
//! its plugins ends, also those of the plugin that came after (`PluginDisconnected` in
//! `pkg/kubelet/cm/devicemanager/manager.go`, Kubernetes 1.32 to 1.37).

use std::collections::{BTreeMap, BTreeSet};

use crds::GpuRdmaNode;
use crds::cluster::{Mode, ResourceKind, Takeover};
use crds::names::{GPU_PLUGIN_LABEL, PLUGIN_LABEL};
use crds::node::{GpuPlugin, GpuRdmaNodeStatus};
use crds::reasons::NodeReason;

use crate::conditions::listed;
use crate::facts::{NodeFacts, PodFacts};
use crate::rollout;
use crate::validate::Cluster;
use crate::views;

/// The resource that NVIDIA's plugin advertises, unless it is told otherwise.
const NVIDIA_GPU: &str = "nvidia.com/gpu";
/// Value of the label that deploys the other plugin.
const ON: &str = "true";
/// Value of the label that keeps it away.
const OFF: &str = "false";

/// A change of the label and of the annotation that remembers its value, on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The node.
    pub node: String,
    /// The label as it was seen: what changed since is not written over.
    pub seen: Option<String>,
    /// The label as it should be.
    pub label: Option<String>,
    /// The annotation as it should be.
    pub was: Option<String>,
}

/// Where a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Why, as a condition reason.
    pub reason: NodeReason,
    /// What it waits for, and what to do.
    pub message: String,
}

/// What to do on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What its agent is told.
    pub told: GpuPlugin,
    /// Whether our plugin leaves the node.
    pub plugin_leaves: bool,
    /// What changes on it.
    pub switch: Option<Switch>,
    /// Where it stands; none where there is nothing to say.
    pub standing: Option<Standing>,
}

/// A node as this looks at it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Its name.
    pub name: &'a str,
    /// The node.
    pub facts: &'a NodeFacts,
    /// Its `GpuRdmaNode`.
    pub object: Option<&'a GpuRdmaNode>,
    /// Its pods.
    pub pods: &'a [PodFacts],
}

/// What to do on the nodes of a living cluster, by node.
#[must_use]
pub fn members(cluster: &Cluster, views: &[View<'_>]) -> BTreeMap<String, Step> {
    let policy = &cluster.upgrade.max_unavailable;
    let total = rollout::slots(policy, views.len()).unwrap_or(1);
    let mut busy: Vec<&str> = Vec::new();
    busy.extend(
        views
            .iter()
            .filter(|view| is_busy(cluster, view))
            .map(|view| view.name),
    );
    let mut steps = BTreeMap::new();
    for view in views {
        let mut slots = Slots {
            total,
            busy: &mut busy,
        };
        steps.insert(view.name.to_owned(), member(cluster, view, &mut slots));
    }
    steps
}

/// Nodes that change at a time.
struct Slots<'a, 'b> {
    total: usize,
    busy: &'b mut Vec<&'a str>,
}

impl<'a> Slots<'a, '_> {
    /// Takes a slot for a node, or says who has them.
    fn take(&mut self, node: &'a str) -> Result<(), String> {
        if self.busy.contains(&node) {
            return Ok(());
        }
        if self.busy.len() < self.total {
            self.busy.push(node);
            return Ok(());
        }
        Err(format!(
            "Waits for its turn: {} by spec.upgrade.maxUnavailable, out of service: {}.",
            self.total,
            listed(self.busy)
        ))
    }
}

/// A node that is on its way, or out of service for another reason.
fn is_busy(cluster: &Cluster, view: &View<'_>) -> bool {
    let facts = view.facts;
    let out = facts.tainted || facts.not_ready;
    let labelled = facts.labels.contains_key(PLUGIN_LABEL);
    let moves = facts.gpu_plugin_was.is_some()
        && if adopts(cluster) {
            !is_taken_over(view)
        } else {
            !labelled
        };
    moves || (out && view.object.is_some_and(views::is_applicable))
}

/// The other plugin is gone, the agent says, and pairs are offered.
fn is_taken_over(view: &View<'_>) -> bool {
    let label = view.facts.labels.get(GPU_PLUGIN_LABEL);
    let off = label.is_none_or(|label| label == OFF);
    let settled = |object: &GpuRdmaNode| {
        let status = object.status.as_ref();
        let gone = |status: &GpuRdmaNodeStatus| {
            status.other_advertisers.is_empty() && status.summary.admitted_pairs > 0
        };
        views::is_fresh(object) && status.is_some_and(gone)
    };
    off && view.object.is_some_and(settled)
}

fn adopts(cluster: &Cluster) -> bool {
    cluster.mode == Mode::Enforce && cluster.config.device_plugin.takeover == Takeover::Adopt
}

fn member<'a>(cluster: &Cluster, view: &View<'a>, slots: &mut Slots<'a, '_>) -> Step {
    if cluster.paused {
        let told = view.object.map(|object| object.spec.gpu_plugin);
        return Step {
            told: told.unwrap_or_default(),
            ..Step::default()
        };
    }
    match (adopts(cluster), view.facts.gpu_plugin_was.as_deref()) {
        (true, Some(was)) => taken_over(view, was),
        (true, None) => candidate(cluster, view, slots),
        (false, Some(_)) => {
            let started = !view.facts.labels.contains_key(PLUGIN_LABEL);
            match slots.take(view.name) {
                Err(why) if !started => Step {
                    standing: Some(standing(NodeReason::GivingBack, why)),
                    ..Step::default()
                },
                _ => give_back(view, cluster.config.device_plugin.give_back),
            }
        }
        (false, None) => Step::default(),
    }
}

fn standing(reason: NodeReason, message: impl Into<String>) -> Standing {
    Standing {
        reason,
        message: message.into(),
    }
}

/// A node that was switched off. Its labels may have been lost and made again (gpu-operator sets a label that is not there).
fn taken_over(view: &View<'_>, was: &str) -> Step {
    let label = view.facts.labels.get(GPU_PLUGIN_LABEL).map(String::as_str);
    let mut step = Step::default();
    match label {
        Some(OFF) => step.told = GpuPlugin::SwitchedOff,
        Some(ON) => step.switch = Some(switch(view, OFF, Some(was))),
        _ => {}
    }
    if !is_taken_over(view) {
        let message = "The other device plugin is switched off; its devices go, then the pairs are offered. See the node's findings: kubectl describe grn.";
        step.standing = Some(standing(NodeReason::TakingOver, message));
    }
    step
}

fn switch(view: &View<'_>, label: &str, was: Option<&str>) -> Switch {
    Switch {
        node: view.name.to_owned(),
        seen: view.facts.labels.get(GPU_PLUGIN_LABEL).cloned(),
        label: Some(label.to_owned()),
        was: was.map(str::to_owned),
    }
}

/// A node that the other plugin has.
fn candidate<'a>(cluster: &Cluster, view: &View<'a>, slots: &mut Slots<'a, '_>) -> Step {
    let label = view.facts.labels.get(GPU_PLUGIN_LABEL).map(String::as_str);
    if label == Some(OFF) {
        return Step {
            told: GpuPlugin::SwitchedOff,
            ..Step::default()
        };
    }
    let Some(status) = reported(view) else {
        return Step::default();
    };
    let verdict = obstacle(cluster, view, status, label);
    let verdict = verdict.and_then(|()| {
        let turn = slots.take(view.name);
        turn.map_err(|why| (NodeReason::TakeoverWaits, why))
    });
    match verdict {
        Ok(()) => Step {
            switch: Some(switch(view, OFF, label)),
            standing: Some(standing(
                NodeReason::TakingOver,
                "The other device plugin is being switched off.",
            )),
            ..Step::default()
        },
        Err((_, why)) if why.is_empty() => Step::default(),
        Err((reason, why)) => Step {
            standing: Some(standing(reason, why)),
            ..Step::default()
        },
    }
}

/// What the agent says of a node that this is for.
fn reported<'a>(view: &View<'a>) -> Option<&'a GpuRdmaNodeStatus> {
    let object = view.object.filter(|object| views::is_applicable(object))?;
    object.status.as_ref().filter(|_| views::is_fresh(object))
}

type Obstacle = (NodeReason, String);

/// Why a node is not switched over now; an empty text where there is nothing to switch.
fn obstacle(
    cluster: &Cluster,
    view: &View<'_>,
    status: &GpuRdmaNodeStatus,
    label: Option<&str>,
) -> Result<(), Obstacle> {
    let waits = |message: String| Err((NodeReason::TakeoverWaits, message));
    let others = &status.other_advertisers;
    match label {
        Some(ON) => {}
        None if others.is_empty() => return waits(String::new()),
        None => {
            return waits(format!(
                "{} is advertised by a device plugin that the node label {GPU_PLUGIN_LABEL} does not deploy: switch it off on this node by hand; the pairs come once it is gone.",
                names(others.iter().map(|other| other.resource.as_str()))
            ));
        }
        Some(other) => {
            return waits(format!(
                "The node label {GPU_PLUGIN_LABEL} is {other:?}: waits until its owner, gpu-operator, is done."
            ));
        }
    }
    if let Some(split) = others.iter().find(|other| other.partitioned) {
        let message = format!(
            "{} hands out parts of GPUs (MIG, or copies for time slicing), and pairs are whole ones: end that on this node first.",
            split.resource
        );
        return Err((NodeReason::GpuPartitioned, message));
    }
    let hinders = |id: &str| INJECTION.contains(&id);
    if let Some(finding) = status.findings.iter().find(|finding| hinders(&finding.id)) {
        let message = format!(
            "The node's GPUs could not be put into containers after it, so they stay where they are: {}: {}",
            finding.id, finding.message
        );
        return Err((NodeReason::GpuInjectionUnavailable, message));
    }
    if status.pairs.is_empty() {
        return waits(
            "No pair would be there after it: see the node's findings: kubectl describe grn."
                .to_owned(),
        );
    }
    let held = foreign_holders(cluster, view, status);
    if !held.is_empty() {
        return waits(format!(
            "Waits for these pods, which hold GPUs under another name, to end: {}. Cordon the node to keep new ones away.",
            listed(&held)
        ));
    }
    Ok(())
}

/// Findings of the agent that keep GPUs out of containers.
const INJECTION: [&str; 2] = ["GPU_INJECTION_UNAVAILABLE", "NO_GPU_DRIVER"];

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Pods that hold GPUs of the other plugin under a name that is none of ours.
fn foreign_holders(cluster: &Cluster, view: &View<'_>, status: &GpuRdmaNodeStatus) -> Vec<String> {
    let others = status.other_advertisers.iter();
    let mut theirs: BTreeSet<&str> = others.map(|other| other.resource.as_str()).collect();
    theirs.insert(NVIDIA_GPU);
    theirs.retain(|name| !cluster.resources.contains(*name));
    let holds = |pod: &&PodFacts| {
        pod.resources
            .iter()
            .any(|name| theirs.contains(name.as_str()))
    };
    view.pods.iter().filter(holds).map(PodFacts::id).collect()
}

/// A node that nobody has any more; none where nothing was taken. `wanted` is what its last cluster says, where there
/// is one.
#[must_use]
pub fn leaving(view: &View<'_>, wanted: Option<bool>) -> Option<Step> {
    view.facts.gpu_plugin_was.as_ref()?;
    let told = view
        .object
        .map(|object| object.spec.config.device_plugin.give_back);
    Some(give_back(view, wanted.or(told).unwrap_or(true)))
}

fn give_back(view: &View<'_>, wanted: bool) -> Step {
    let was = view.facts.gpu_plugin_was.as_deref().unwrap_or(ON);
    let label = view.facts.labels.get(GPU_PLUGIN_LABEL).map(String::as_str);
    if !wanted || label != Some(OFF) {
        // What is not as we left it is someone else's by now.
        let switch = Switch {
            label: label.map(str::to_owned),
            ..switch(view, OFF, None)
        };
        return Step {
            switch: Some(switch),
            ..Step::default()
        };
    }
    let why = hindrance(view.facts, view.pods, &own_names(view.object));
    Step {
        told: GpuPlugin::ComesBack,
        plugin_leaves: true,
        switch: why.is_none().then(|| switch(view, was, None)),
        standing: Some(standing(
            NodeReason::GivingBack,
            why.unwrap_or_else(|| "The other device plugin is switched on again.".to_owned()),
        )),
    }
}

/// What the other plugin has to wait for. `own` are the resources that we had there.
#[must_use]
pub fn hindrance(facts: &NodeFacts, pods: &[PodFacts], own: &BTreeSet<String>) -> Option<String> {
    if facts.labels.contains_key(PLUGIN_LABEL) || pods.iter().any(|pod| pod.plugin) {
        return Some("Before the other device plugin comes back, ours leaves the node.".to_owned());
    }
    let ours = |name: &String| {
        name != NVIDIA_GPU && (own.contains(name) || name.starts_with(views::RDMA_DOMAIN))
    };
    let held = pods.iter().filter(|pod| pod.resources.iter().any(ours));
    let held: Vec<_> = held.map(PodFacts::id).collect();
    (!held.is_empty()).then(|| {
        format!(
            "Before the other device plugin comes back, these pods, which hold GPUs as pairs, have to end: {}.",
            listed(&held)
        )
    })
}

/// Resources with GPUs in them that the agent of a node was told to offer.
#[must_use]
pub fn own_names(object: Option<&GpuRdmaNode>) -> BTreeSet<String> {
    let resources = object
        .into_iter()
        .flat_map(|object| &object.spec.config.device_plugin.resources);
    let with_gpus = resources.filter(|resource| resource.kind != ResourceKind::SharedNic);
    with_gpus.map(|resource| resource.name.clone()).collect()
}

#[cfg(test)]
mod tests;
