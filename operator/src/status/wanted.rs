//! The conditions of a cluster as they should be. Pure. Every message says what, where, and what to do.

use crds::cluster::Mode;
use crds::reasons::{ClusterCondition, ClusterReason};

use super::{Inputs, Standing, State};
use crate::conditions::{Wanted, listed};
use crate::validate::Invalid;

type Verdict = (bool, ClusterReason, String);

pub(super) fn conditions(inputs: Inputs<'_>, name: &str, standings: &[Standing]) -> Vec<Wanted> {
    [
        (ClusterCondition::Ready, ready(inputs, name, standings)),
        (ClusterCondition::Progressing, progressing(standings)),
        (
            ClusterCondition::Degraded,
            degraded(inputs, name, standings),
        ),
        (ClusterCondition::Conflict, conflict(inputs, name)),
        (
            ClusterCondition::NotYetSupported,
            not_yet_supported(inputs, name),
        ),
        (ClusterCondition::Paused, paused(inputs)),
    ]
    .into_iter()
    .map(|(kind, (holds, reason, message))| Wanted {
        kind,
        holds,
        reason,
        message,
    })
    .collect()
}

fn ready(inputs: Inputs<'_>, name: &str, standings: &[Standing]) -> Verdict {
    if let Some(invalid) = inputs.validated.reason(name) {
        return (false, invalid_reason(invalid), crate::error::chain(invalid));
    }
    if let Some(failure) = inputs.failure {
        return (false, ClusterReason::ApplyFailed, failure.to_owned());
    }
    let not_yet = not_yet(inputs, name);
    if !not_yet.is_empty() {
        return (
            false,
            ClusterReason::NotYetSupported,
            unsupported_message(not_yet),
        );
    }
    let matched = inputs
        .assignments
        .matched
        .get(name)
        .map_or(0, std::collections::BTreeSet::len);
    match (matched, standings.is_empty()) {
        (0, true) => (
            false,
            ClusterReason::NoMatchingNodes,
            no_nodes(inputs, name),
        ),
        (_, true) => (false, ClusterReason::Conflict, other_owners(inputs, name)),
        (_, false) => nodes_ready(inputs.cluster.spec.mode, standings),
    }
}

fn nodes_ready(mode: Mode, standings: &[Standing]) -> Verdict {
    let applicable = standings
        .iter()
        .filter(|one| one.state != State::NotApplicable)
        .count();
    if applicable == 0 {
        let message = format!(
            "{} nodes match, none has both a GPU and an RDMA device.",
            standings.len()
        );
        return (false, ClusterReason::NoApplicableNodes, message);
    }
    let behind: Vec<_> = standings
        .iter()
        .filter(|one| !matches!(one.state, State::NotApplicable | State::Reached))
        .collect();
    if behind.is_empty() {
        let (reason, what) = goal(mode);
        return (true, reason, format!("{applicable} nodes: {what}"));
    }
    let names: Vec<_> = behind.iter().map(|one| one.node.as_str()).collect();
    let message = format!(
        "{} of {applicable} nodes are not ready: {}. See status.nodes.",
        behind.len(),
        listed(&names)
    );
    let all = |state| behind.iter().all(|one| one.state == state);
    let reason = match () {
        () if all(State::Pending) => ClusterReason::AgentPending,
        () if behind.iter().any(|one| one.state == State::Failed) => {
            ClusterReason::MaintenanceHalted
        }
        () if behind.iter().any(|one| one.state == State::Degraded) => ClusterReason::NodesDegraded,
        () => ClusterReason::NodesNotReady,
    };
    (false, reason, message)
}

const fn goal(mode: Mode) -> (ClusterReason, &'static str) {
    match mode {
        Mode::Observe => (
            ClusterReason::ObserveOnly,
            "observed; nothing is changed and nothing advertised.",
        ),
        Mode::Plan => (
            ClusterReason::PlanOnly,
            "planned; nothing is changed and nothing advertised.",
        ),
        Mode::Enforce => (ClusterReason::NodesReady, "as the cluster asks."),
    }
}

const fn invalid_reason(invalid: &Invalid) -> ClusterReason {
    match invalid {
        Invalid::Selector { .. }
        | Invalid::Values { .. }
        | Invalid::LabelKey { .. }
        | Invalid::LabelValue { .. } => ClusterReason::InvalidSelector,
        Invalid::NoContainer
        | Invalid::MaxUnavailable { .. }
        | Invalid::WaitTimeout { .. }
        | Invalid::Text(_)
        | Invalid::Range { .. }
        | Invalid::Overlap { .. }
        | Invalid::Unreadable { .. }
        | Invalid::Hash(_) => ClusterReason::InvalidSpec,
    }
}

fn no_nodes(inputs: Inputs<'_>, name: &str) -> String {
    let selector = inputs
        .validated
        .get(name)
        .map(crate::validate::Cluster::selector_text)
        .unwrap_or_default();
    let nodes = inputs.snapshot.nodes.len();
    format!(
        "None of {nodes} nodes matches {selector}. Label the nodes or change spec.nodeSelector; to see what matches: \
         kubectl get nodes -l '{selector}'"
    )
}

fn other_owners(inputs: Inputs<'_>, name: &str) -> String {
    let matched = inputs.assignments.matched.get(name).into_iter().flatten();
    let mut owners: Vec<_> = matched
        .filter_map(|node| inputs.assignments.owner.get(node))
        .collect();
    owners.sort_unstable();
    owners.dedup();
    format!(
        "Other clusters have every matching node: {}. The higher spec.priority has a node.",
        listed(&owners)
    )
}

fn progressing(standings: &[Standing]) -> Verdict {
    let of = |state: State| -> Vec<&Standing> {
        standings.iter().filter(|one| one.state == state).collect()
    };
    for (state, reason, what) in [
        (
            State::Draining,
            ClusterReason::WaitingForWorkloads,
            "waits for pods to end on",
        ),
        (
            State::Maintained,
            ClusterReason::MaintenanceInProgress,
            "maintenance on",
        ),
        (
            State::Queued,
            ClusterReason::NoMaintenanceSlot,
            "waiting for a maintenance slot:",
        ),
        (
            State::Pending,
            ClusterReason::AgentPending,
            "no report yet from",
        ),
        (State::Moving, ClusterReason::Progressing, "on their way:"),
    ] {
        let found = of(state);
        if !found.is_empty() {
            let names: Vec<_> = found.iter().map(|one| one.node.as_str()).collect();
            return (
                true,
                reason,
                format!("{} nodes: {what} {}.", found.len(), listed(&names)),
            );
        }
    }
    (
        false,
        ClusterReason::Settled,
        "Nothing is on its way.".to_owned(),
    )
}

fn degraded(inputs: Inputs<'_>, name: &str, standings: &[Standing]) -> Verdict {
    if let Some(held) = inputs.assignments.held.get(name) {
        let names: Vec<_> = held.iter().collect();
        let message = format!(
            "{} nodes lost the labels that spec.nodeSelector asks for, all at once, and are kept: {}. Restore the \
             labels, or change spec.nodeSelector to let the nodes go.",
            held.len(),
            listed(&names)
        );
        return (true, ClusterReason::NodesHeld, message);
    }
    if let Some(verdict) = halted(standings) {
        return verdict;
    }
    let broken: Vec<_> = standings
        .iter()
        .filter(|one| one.state == State::Degraded)
        .collect();
    let names: Vec<_> = broken.iter().map(|one| one.node.as_str()).collect();
    if names.is_empty() {
        return (
            false,
            ClusterReason::Settled,
            "No node needs a person.".to_owned(),
        );
    }
    (
        true,
        ClusterReason::NodesDegraded,
        format!("{} nodes need a person: {}.", names.len(), listed(&names)),
    )
}

/// Failed maintenance stops all further grants of the cluster.
fn halted(standings: &[Standing]) -> Option<Verdict> {
    let of = |state: State| standings.iter().filter(move |one| one.state == state);
    let first = of(State::Failed).next()?;
    let (failed, waiting) = (of(State::Failed).count(), of(State::Halted).count());
    let message = format!(
        "Maintenance failed on {failed} nodes and {waiting} wait for it. {}: {}",
        first.node, first.message
    );
    Some((true, ClusterReason::MaintenanceHalted, message))
}

fn conflict(inputs: Inputs<'_>, name: &str) -> Verdict {
    let Some(ties) = inputs.assignments.ties.get(name) else {
        return (
            false,
            ClusterReason::NoConflict,
            "No other cluster of the same priority selects these nodes.".to_owned(),
        );
    };
    let mut nodes: Vec<_> = ties.iter().map(|tie| tie.node.as_str()).collect();
    nodes.dedup();
    let mut others: Vec<_> = ties.iter().map(|tie| tie.with.as_str()).collect();
    others.sort_unstable();
    others.dedup();
    let message = format!(
        "{} nodes are selected by {} with the same priority: {}. Each keeps its present owner; change spec.nodeSelector \
         or spec.priority.",
        nodes.len(),
        listed(&others),
        listed(&nodes)
    );
    (true, ClusterReason::Conflict, message)
}

fn not_yet<'a>(inputs: Inputs<'a>, name: &str) -> &'a [&'static str] {
    inputs
        .validated
        .get(name)
        .map(|cluster| cluster.not_yet.as_slice())
        .unwrap_or_default()
}

fn unsupported_message(fields: &[&'static str]) -> String {
    format!(
        "These fields have no effect in this version, remove them: {}.",
        fields.join(", ")
    )
}

fn not_yet_supported(inputs: Inputs<'_>, name: &str) -> Verdict {
    match not_yet(inputs, name) {
        [] => (
            false,
            ClusterReason::AllSupported,
            "Every field in use has its effect.".to_owned(),
        ),
        fields => (
            true,
            ClusterReason::NotYetSupported,
            unsupported_message(fields),
        ),
    }
}

fn paused(inputs: Inputs<'_>) -> Verdict {
    if inputs.cluster.spec.paused {
        (
            true,
            ClusterReason::Paused,
            "spec.paused is set: nothing new starts.".to_owned(),
        )
    } else {
        (
            false,
            ClusterReason::NotPaused,
            "spec.paused is not set.".to_owned(),
        )
    }
}
