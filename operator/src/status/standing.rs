//! Where one node stands in its cluster, and why. Pure.

use crds::GpuRdmaNode;
use crds::cluster::Mode;
use crds::node::{GpuRdmaNodeStatus, Phase};
use crds::reasons::NodeReason;

use crate::conditions::listed;
use crate::rails::Problem;
use crate::rollout::{self, Decision};
use crate::takeover;

/// Names of the agent's phases.
pub const PHASES: [&str; 8] = [
    "Pending",
    "NotApplicable",
    "Observed",
    "Planned",
    "Progressing",
    "Waiting",
    "Ready",
    "Degraded",
];

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Has no GPU or no NIC: counts nowhere.
    NotApplicable,
    /// As the cluster asks.
    Reached,
    /// Its agent has not reported.
    Pending,
    /// On its way.
    Moving,
    /// Waits for a maintenance slot.
    Queued,
    /// Keeps new pods away and waits for those that are there.
    Draining,
    /// Under maintenance.
    Maintained,
    /// Waits because maintenance failed on another node.
    Halted,
    /// Its maintenance failed.
    Failed,
    /// Needs a person.
    Degraded,
}

/// One node in its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub node: String,
    /// Where it stands.
    pub state: State,
    /// Why, as a condition reason.
    pub reason: String,
    /// Why and what to do.
    pub message: String,
    /// Pairs that may be handed out.
    pub pairs: u32,
    /// The agent's phase.
    pub phase: &'static str,
}

/// Where a node stands.
pub(super) fn of(
    mode: Mode,
    node: &str,
    object: Option<&GpuRdmaNode>,
    decision: Option<&Decision>,
    taken: Option<&takeover::Standing>,
    problem: Option<&Problem>,
) -> Standing {
    let status = object.and_then(|object| object.status.as_ref());
    let found = match (maintenance(decision), taken, status) {
        (Some(found), _, _) => found,
        (None, Some(taken), _) => takeover(taken),
        (None, None, None) => pending(node),
        (None, None, Some(status)) => reported(mode, node, object, status),
    };
    let (state, reason, message) = with_problem(found, problem);
    Standing {
        node: node.to_owned(),
        state,
        reason,
        message,
        pairs: status.map_or(0, |status| status.summary.admitted_pairs),
        phase: phase_name(status.map(|status| status.phase).unwrap_or_default()),
    }
}

type Found = (State, String, String);

/// What keeps a node from its rails needs a person; what the agent says of a node that needs one anyway comes first.
fn with_problem(found: Found, problem: Option<&Problem>) -> Found {
    match (problem, found.0) {
        (Some(problem), State::Reached | State::Moving) => {
            let message = format!("Rails and addresses: {}.", problem.message);
            (State::Degraded, problem.reason.into(), message)
        }
        _ => found,
    }
}

fn takeover(taken: &takeover::Standing) -> Found {
    let state = match taken.reason {
        NodeReason::TakingOver | NodeReason::GivingBack => State::Moving,
        NodeReason::TakeoverWaits => State::Queued,
        _ => State::Degraded,
    };
    (state, taken.reason.into(), taken.message.clone())
}

fn maintenance(decision: Option<&Decision>) -> Option<Found> {
    let decision = decision?;
    let (state, reason, message) = match &decision.state {
        rollout::State::Idle => return None,
        rollout::State::NotReady => {
            let message = "Maintenance waits until the kubelet of this node reports Ready.";
            (
                State::Queued,
                NodeReason::WaitingForGrant,
                message.to_owned(),
            )
        }
        rollout::State::Queued { slots, taken } => {
            let message = format!(
                "Waits for a maintenance slot: {slots} by spec.upgrade.maxUnavailable, out of service: {}.",
                listed(taken)
            );
            (State::Queued, NodeReason::WaitingForGrant, message)
        }
        rollout::State::Halted(why) => {
            let message = format!("Gets no grant because maintenance failed on {why}");
            (State::Halted, NodeReason::MaintenanceHalted, message)
        }
        rollout::State::Postponed { until, why } => {
            let message = format!("Gave its maintenance slot back: {why}. Tried again at {until}.");
            (State::Queued, NodeReason::MaintenancePostponed, message)
        }
        rollout::State::WaitingForPods(_) | rollout::State::Evicting { .. } => draining(decision),
        rollout::State::Running(said) => {
            let message = match said.as_str() {
                "" => "Maintenance runs.".to_owned(),
                said => format!("Maintenance runs: {said}."),
            };
            (
                State::Maintained,
                NodeReason::MaintenanceInProgress,
                message,
            )
        }
        rollout::State::WaitingForAgent(what) => {
            let message = format!("After maintenance: {what}.");
            (
                State::Maintained,
                NodeReason::MaintenanceInProgress,
                message,
            )
        }
        rollout::State::Failed(why) => {
            let message = format!("{why}. {}", crate::maintenance::remedy(&decision.node));
            (State::Failed, NodeReason::MaintenanceFailed, message)
        }
    };
    Some((state, reason.into(), message))
}

fn draining(decision: &Decision) -> (State, NodeReason, String) {
    match &decision.state {
        rollout::State::Evicting {
            pods,
            round,
            next,
            refused,
        } => {
            let refused = match refused.as_slice() {
                [] => String::new(),
                refused => format!(" Refused: {}.", listed(refused)),
            };
            let message = format!(
                "Evicts these pods, round {round}, next at {next}: {}.{refused}",
                listed(pods)
            );
            (State::Draining, NodeReason::WaitingForWorkloads, message)
        }
        rollout::State::WaitingForPods(pods) if !pods.is_empty() => {
            let message = format!(
                "Waits for these pods to end, new ones are kept away: {}.",
                listed(pods)
            );
            (State::Draining, NodeReason::WaitingForWorkloads, message)
        }
        _ => {
            let message = "Keeps new pods away; maintenance starts next.";
            (
                State::Maintained,
                NodeReason::MaintenanceInProgress,
                message.to_owned(),
            )
        }
    }
}

fn pending(node: &str) -> Found {
    let message = format!(
        "The agent has not reported. See the pod of DaemonSet gpu-rdma-agent on it: kubectl get pods -A \
         -l app.kubernetes.io/component=agent --field-selector spec.nodeName={node}"
    );
    (State::Pending, NodeReason::AgentPending.into(), message)
}

fn reported(
    mode: Mode,
    node: &str,
    object: Option<&GpuRdmaNode>,
    status: &GpuRdmaNodeStatus,
) -> Found {
    let fresh = object.is_some_and(crate::views::is_fresh);
    match status.phase {
        Phase::NotApplicable => (
            State::NotApplicable,
            NodeReason::NotApplicable.into(),
            "No GPU or no RDMA device.".to_owned(),
        ),
        Phase::Pending => pending(node),
        Phase::Degraded => explained(State::Degraded, status, NodeReason::ErrorsFound),
        phase if phase == goal(mode) && fresh => {
            explained(State::Reached, status, NodeReason::AsSpecified)
        }
        _ => explained(State::Moving, status, NodeReason::Progressing),
    }
}

const fn goal(mode: Mode) -> Phase {
    match mode {
        Mode::Observe => Phase::Observed,
        Mode::Plan => Phase::Planned,
        Mode::Enforce => Phase::Ready,
    }
}

/// The agent's own reason, from its Ready condition; its worst finding where it has none.
fn explained(state: State, status: &GpuRdmaNodeStatus, otherwise: NodeReason) -> Found {
    let ready = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready");
    if let Some(ready) = ready {
        return (state, ready.reason.clone(), ready.message.clone());
    }
    let message = status
        .findings
        .first()
        .map(|finding| format!("{}: {}", finding.id, finding.message));
    (
        state,
        otherwise.into(),
        message.unwrap_or_else(|| format!("The agent reports {}.", phase_name(status.phase))),
    )
}

const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::NotApplicable => "NotApplicable",
        Phase::Observed => "Observed",
        Phase::Planned => "Planned",
        Phase::Progressing => "Progressing",
        Phase::Waiting => "Waiting",
        Phase::Ready => "Ready",
        Phase::Degraded => "Degraded",
    }
}
