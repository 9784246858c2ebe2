//! Maintenance as a state machine. Pure: nodes as they are seen, in; steps and what each node waits for, out. Every
//! state is read from the objects (taint, grant, labels, status, [`Record`]), so a restarted operator goes on where it
//! was.
//!
//! idle → queued → tainted, waits for pods or evicts them → driver started or plan granted → completed → verified →
//! idle. A node whose wait is over gives its slot back and is postponed. Failed maintenance keeps its node's taint and
//! halts the cluster: no other node gets a grant until the specification changes or a person resets the attempts.
//!
//! A plan counts only while the agent's status is about the present generation and install hash: what it said before
//! the last change is no ground to interrupt traffic. After a grant nothing is concluded before the agent has reported
//! on the generation in which the grant is gone.

use crds::cluster::{Mode, Workloads};
use crds::node::{Cost, Maintenance, MaintenanceStatus, Phase, PlanStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

mod drain;
mod node;
mod record;
mod slots;

pub use drain::{Holder, Stays};
pub use record::Record;
pub use slots::slots;

/// What the cluster allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Grants are given in Enforce only.
    pub mode: Mode,
    /// No new maintenance; what runs goes on.
    pub paused: bool,
    /// Nodes under maintenance at a time.
    pub slots: usize,
    /// What happens to pods that hold our resources.
    pub workloads: Workloads,
    /// How long to wait for them; none: for ever.
    pub wait_timeout: Option<SignedDuration>,
    /// The time, in whole seconds.
    pub now: Timestamp,
}

impl Policy {
    /// What of it decides how long a node is waited for: another one is tried at once.
    fn fingerprint(&self) -> String {
        let timeout = self.wait_timeout.map_or(0, |timeout| timeout.as_secs());
        format!("{:?}/{timeout}", self.workloads)
    }
}

/// Why a node is out of service without our doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Its kubelet does not report Ready.
    NotReady,
    /// Someone cordoned it: read, never changed.
    Cordoned,
}

/// The Ready condition that the agent reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
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
    /// The agent's phase.
    pub phase: Phase,
    /// The agent's Ready condition.
    pub ready: Ready,
    /// Hash of specification and reset annotation: another version forgives a failure.
    pub version: String,
    /// Whether the node has our taint.
    pub tainted: bool,
    /// Whether it is out of service without our doing.
    pub unavailable: Option<Unavailable>,
    /// Pods that hold our resources, sorted.
    pub holders: Vec<Holder>,
    /// What the rollout remembers.
    pub record: Record,
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
    /// An action failed as often as its budget allows.
    Failed,
    /// The agent has not begun within `upgrade.waitTimeout`.
    TimedOut,
    /// The node left its cluster.
    Released,
}

/// Something to do on a node now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keep new pods away.
    Taint,
    /// Let pods come again.
    Untaint,
    /// Evict these pods, namespace and name.
    Evict(Vec<(String, String)>),
    /// Say that the node gave its slot back, and why.
    Postpone(String),
    /// Say that its maintenance failed, and how.
    Fail(String),
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
    /// Needs maintenance, and its kubelet does not report Ready.
    NotReady,
    /// Needs maintenance; other nodes have the slots.
    Queued {
        /// How many there are.
        slots: usize,
        /// Who has them, and why.
        taken: Vec<String>,
    },
    /// Needs maintenance, which failed on another node.
    Halted(String),
    /// Gave its slot back.
    Postponed {
        /// Until then.
        until: Timestamp,
        /// Why.
        why: String,
    },
    /// Keeps new pods away and waits for these.
    WaitingForPods(Vec<String>),
    /// Keeps new pods away and evicts these.
    Evicting {
        /// The pods that are left.
        pods: Vec<String>,
        /// The round.
        round: u32,
        /// When the next one comes.
        next: Timestamp,
        /// Who refused in the last one.
        refused: Vec<String>,
    },
    /// Maintenance runs; what the agent says of it.
    Running(String),
    /// Waits for this.
    WaitingForAgent(String),
    /// Its maintenance failed, so.
    Failed(String),
}

/// What to do on a node, and where it stands then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The node.
    pub node: String,
    /// What to remember, before the steps; none: as before.
    pub record: Option<Record>,
    /// In this order.
    pub steps: Vec<Step>,
    /// For the status.
    pub state: State,
    /// When to look again, whatever happens.
    pub wake: Option<Timestamp>,
}

impl Decision {
    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.record.is_none()
    }
}

/// Decides for all nodes of a cluster; the result is in the order of names.
#[must_use]
pub fn decide(policy: &Policy, nodes: &[NodeView]) -> Vec<Decision> {
    let mut slots = slots::Slots::of(policy.slots, nodes);
    let halt = halt(nodes);
    let mut order: Vec<&NodeView> = nodes.iter().collect();
    // Nodes without pods first: they need not wait, and a long job does not hold up the fleet. Those that gave their
    // slot back come after the others.
    order.sort_by_key(|node| (node.record.given_back, !node.holders.is_empty(), &node.name));
    let mut decisions: Vec<_> = order
        .into_iter()
        .map(|node| node::decide(policy, node, &mut slots, halt.as_deref()))
        .collect();
    decisions.sort_by(|a, b| a.node.cmp(&b.node));
    decisions
}

/// The first node whose maintenance failed: no other one gets a grant.
fn halt(nodes: &[NodeView]) -> Option<String> {
    let failed = nodes
        .iter()
        .filter_map(|node| Some((&node.name, node.failure()?)));
    let (name, why) = failed.min()?;
    Some(format!("{name}: {why}"))
}

impl NodeView {
    fn in_maintenance(&self) -> bool {
        self.tainted || self.grant.is_some()
    }

    fn is_applicable(&self) -> bool {
        self.phase != Phase::NotApplicable
    }

    fn wants(&self) -> bool {
        self.needs_driver() || self.wanted_plan().is_some()
    }

    fn wanted_plan(&self) -> Option<&PlanStatus> {
        self.present_plan().filter(|plan| plan.cost > Cost::None)
    }

    /// The plan, where it is about what is asked now.
    fn present_plan(&self) -> Option<&PlanStatus> {
        let plan = self.plan.as_ref().filter(|_| self.fresh)?;
        (plan.install_hash == self.install_hash).then_some(plan)
    }

    /// Something was done, and the agent has not reported since.
    fn unconfirmed(&self) -> bool {
        self.record.acted.is_some() && !self.fresh
    }

    fn progress_of(&self, grant: &Maintenance) -> Option<&MaintenanceStatus> {
        let said = self.progress.as_ref()?;
        (said.granted_plan == grant.granted_plan).then_some(said)
    }

    fn begun(&self, grant: &Maintenance) -> bool {
        self.progress_of(grant)
            .is_some_and(|said| said.started_at.is_some())
    }

    /// The reason for which the node is Degraded.
    fn degraded(&self) -> Option<String> {
        (self.phase == Phase::Degraded).then(|| self.ready.reason.clone())
    }

    /// The pods that hold the node, for people.
    fn holding(&self) -> Vec<String> {
        self.holders.iter().map(Holder::text).collect()
    }

    /// A costly action whose attempts are used up.
    fn exhausted(&self) -> Option<String> {
        let mut actions = self.present_plan()?.actions.iter();
        let stuck = actions.find(|action| action.exhausted && action.cost > Cost::None)?;
        Some(node::given_up(stuck))
    }

    /// How the node's maintenance failed: attempts used up, or a node that is Degraded afterwards and was not so, or not
    /// for that reason, before. Another specification or reset annotation forgives the latter.
    fn failure(&self) -> Option<String> {
        if let Some(stuck) = self.exhausted() {
            return Some(stuck);
        }
        let noted = self.record.failed.as_ref();
        if !self.fresh && noted == Some(&self.version) {
            return Some("its maintenance failed, and the agent has not reported since".to_owned());
        }
        let over = self.tainted && self.grant.is_none() && self.fresh && !self.wants();
        let worse = self
            .degraded()
            .filter(|_| over && self.record.acted.is_some())?;
        let forgiven = noted.is_some_and(|at| *at != self.version);
        if forgiven || self.record.before.as_ref() == Some(&worse) {
            return None;
        }
        let Ready { reason, message } = &self.ready;
        Some(format!(
            "after maintenance the node is Degraded, {reason}: {message}"
        ))
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
}

#[cfg(test)]
mod tests;
