//! Maintenance as a state machine. Pure: nodes as they are seen, in; steps and what each node waits for, out. Every
//! state is read from the objects (taint, grant, labels, status), so a restarted operator goes on where it was.
//!
//! idle → queued → tainted, waits for pods → driver started or plan granted → completed → idle.
//!
//! A plan counts only while the agent's status is about the present generation and install hash: what it said before
//! the last change is no ground to interrupt traffic.

use crds::cluster::Mode;
use crds::node::{Cost, Maintenance, MaintenanceStatus, PlanStatus};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What the cluster allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Grants are given in Enforce only.
    pub mode: Mode,
    /// No new maintenance; what runs goes on.
    pub paused: bool,
    /// Nodes under maintenance at a time.
    pub slots: usize,
}

/// How a node stands to its cluster's driver container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// The driver comes from elsewhere, or the node cannot use it.
    #[default]
    NotOurs,
    /// The node has no driver pod yet.
    Missing,
    /// Its pod was made from an older template.
    Outdated {
        /// `namespace/name` of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
    },
    /// Its pod starts or ends.
    Starting,
    /// Its pod is up to date and ready.
    Current,
    /// It has a driver pod that the cluster no longer asks for.
    Unwanted,
    /// A driver pod that no DaemonSet has: one from before, whose node label is gone.
    Leftover {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
    },
}

/// A node, as far as maintenance needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// Name.
    pub name: String,
    /// Install hash that the node shall have.
    pub install_hash: String,
    /// Whether the agent's status is about the present generation.
    pub fresh: bool,
    /// What the agent would do.
    pub plan: Option<PlanStatus>,
    /// What it may do.
    pub grant: Option<Maintenance>,
    /// How far it is.
    pub progress: Option<MaintenanceStatus>,
    /// Whether the node has our taint.
    pub tainted: bool,
    /// Pods that hold our resources, `namespace/name`, sorted.
    pub holders: Vec<String>,
    /// The driver container.
    pub driver: Driver,
}

/// Why a grant ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The agent completed it.
    Completed,
    /// It was for another install hash.
    HashChanged,
    /// The agent wants another plan and has not begun this one.
    PlanChanged,
    /// The cluster no longer enforces.
    NotEnforced,
}

/// Something to do on a node now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keep new pods away.
    Taint,
    /// Let pods come again.
    Untaint,
    /// Allow the plan.
    Grant(Maintenance),
    /// Take the grant back.
    EndGrant(End),
    /// Let the driver DaemonSet have the node, or not.
    DriverLabel {
        /// Whether it shall have it.
        wanted: bool,
    },
    /// Delete a driver pod that gets no successor.
    DeleteDriverPod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Delete the driver pod; its successor has the new template.
    ReplaceDriverPod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Where a node stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// No maintenance.
    #[default]
    Idle,
    /// Needs maintenance; other nodes have the slots.
    Queued,
    /// Keeps new pods away and waits for these.
    WaitingForPods(Vec<String>),
    /// Maintenance runs.
    Running,
    /// Waits for the agent to report on the present generation.
    WaitingForAgent,
}

/// What to do on a node, and where it stands then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The node.
    pub node: String,
    /// In this order.
    pub steps: Vec<Step>,
    /// For the status.
    pub state: State,
}

/// Decides for all nodes of a cluster; the result is in the order of names.
#[must_use]
pub fn decide(policy: Policy, nodes: &[NodeView]) -> Vec<Decision> {
    let busy = nodes.iter().filter(|node| node.in_maintenance()).count();
    let mut free = policy.slots.saturating_sub(busy);
    let mut order: Vec<&NodeView> = nodes.iter().collect();
    // Nodes without pods first: they need not wait, and a long job does not hold up the fleet.
    order.sort_by_key(|node| (!node.holders.is_empty(), &node.name));
    let mut decisions: Vec<_> = order
        .into_iter()
        .map(|node| decide_node(policy, node, &mut free))
        .collect();
    decisions.sort_by(|a, b| a.node.cmp(&b.node));
    decisions
}

/// Nodes that may be under maintenance at a time: a number, or a percentage rounded down; at least one. None where it
/// is neither.
#[must_use]
pub fn slots(max_unavailable: &IntOrString, nodes: usize) -> Option<usize> {
    let count = match max_unavailable {
        IntOrString::Int(count) => usize::try_from(*count).unwrap_or(0),
        IntOrString::String(text) => {
            let percent: usize = text.strip_suffix('%')?.parse().ok()?;
            if percent > 100 {
                return None;
            }
            nodes.saturating_mul(percent) / 100
        }
    };
    Some(count.max(1))
}

fn decide_node(policy: Policy, node: &NodeView, free: &mut usize) -> Decision {
    let (steps, state) = match &node.grant {
        _ if policy.mode != Mode::Enforce => (node.stop(), State::Idle),
        Some(grant) => granted(node, grant),
        None if policy.paused => (node.untaint(), State::Idle),
        None if node.tainted => tainted(node),
        None => idle(node, free),
    };
    Decision {
        node: node.name.clone(),
        steps,
        state,
    }
}

fn idle(node: &NodeView, free: &mut usize) -> (Vec<Step>, State) {
    if !node.needs_driver() && node.wanted_plan().is_none() {
        return (Vec::new(), State::Idle);
    }
    if *free == 0 {
        return (Vec::new(), State::Queued);
    }
    *free -= 1;
    (
        vec![Step::Taint],
        State::WaitingForPods(node.holders.clone()),
    )
}

/// The taint is there first and seen in the cache before pods are counted, so that no new pod slips in between.
fn tainted(node: &NodeView) -> (Vec<Step>, State) {
    let plan = node.wanted_plan();
    if node.driver == Driver::Starting {
        return (Vec::new(), State::Running);
    }
    if !node.needs_driver() && plan.is_none() {
        return if node.fresh {
            (vec![Step::Untaint], State::Idle)
        } else {
            (Vec::new(), State::WaitingForAgent)
        };
    }
    if !node.holders.is_empty() {
        return (Vec::new(), State::WaitingForPods(node.holders.clone()));
    }
    let step = node
        .driver_step()
        .or_else(|| plan.map(|plan| Step::Grant(grant_for(plan))));
    (step.into_iter().collect(), State::Running)
}

fn granted(node: &NodeView, grant: &Maintenance) -> (Vec<Step>, State) {
    if let Some(end) = ended(node, grant) {
        return (vec![Step::EndGrant(end)], State::WaitingForAgent);
    }
    let steps = if node.tainted {
        Vec::new()
    } else {
        vec![Step::Taint]
    };
    (steps, State::Running)
}

fn ended(node: &NodeView, grant: &Maintenance) -> Option<End> {
    let progress = node
        .progress
        .as_ref()
        .filter(|progress| progress.granted_plan == grant.granted_plan);
    if progress.is_some_and(|progress| progress.completed) {
        return Some(End::Completed);
    }
    if grant.install_hash != node.install_hash {
        return Some(End::HashChanged);
    }
    let other = node
        .plan
        .as_ref()
        .is_none_or(|plan| plan.hash != grant.granted_plan);
    (node.fresh && progress.is_none() && other).then_some(End::PlanChanged)
}

/// The attempt follows from what the agent counted, so that it needs no memory here.
fn grant_for(plan: &PlanStatus) -> Maintenance {
    let costly = plan
        .actions
        .iter()
        .filter(|action| action.cost > Cost::None);
    let attempts = costly.map(|action| action.attempts).max().unwrap_or(0);
    Maintenance {
        granted_plan: plan.hash.clone(),
        install_hash: plan.install_hash.clone(),
        attempt: attempts.saturating_add(1),
    }
}

impl NodeView {
    fn in_maintenance(&self) -> bool {
        self.tainted || self.grant.is_some()
    }

    fn wanted_plan(&self) -> Option<&PlanStatus> {
        let plan = self.plan.as_ref().filter(|_| self.fresh)?;
        (plan.cost > Cost::None && plan.install_hash == self.install_hash).then_some(plan)
    }

    fn needs_driver(&self) -> bool {
        matches!(
            self.driver,
            Driver::Missing | Driver::Outdated { .. } | Driver::Unwanted | Driver::Leftover { .. }
        )
    }

    fn driver_step(&self) -> Option<Step> {
        match &self.driver {
            Driver::Missing => Some(Step::DriverLabel { wanted: true }),
            Driver::Unwanted => Some(Step::DriverLabel { wanted: false }),
            Driver::Outdated { namespace, name } => Some(Step::ReplaceDriverPod {
                namespace: namespace.clone(),
                name: name.clone(),
            }),
            Driver::Leftover { namespace, name } => Some(Step::DeleteDriverPod {
                namespace: namespace.clone(),
                name: name.clone(),
            }),
            Driver::NotOurs | Driver::Starting | Driver::Current => None,
        }
    }

    fn untaint(&self) -> Vec<Step> {
        if self.tainted {
            vec![Step::Untaint]
        } else {
            Vec::new()
        }
    }

    fn stop(&self) -> Vec<Step> {
        let end = self
            .grant
            .as_ref()
            .map(|_| Step::EndGrant(End::NotEnforced));
        end.into_iter().chain(self.untaint()).collect()
    }
}

#[cfg(test)]
mod tests;
