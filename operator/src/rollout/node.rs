//! The decision for one node. Pure; [`super::decide`] calls it with the slots and with what halts the cluster.

use crds::cluster::Mode;
use crds::node::{ActionStatus, Cost, Maintenance, Phase, PlanStatus};
use k8s_openapi::jiff::Timestamp;

use super::slots::Slots;
use super::{Decision, Driver, End, NodeView, Policy, Record, State, Step, Unavailable, drain};

/// Steps in the making.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) steps: Vec<Step>,
    pub(super) state: State,
    /// What is remembered from now on; none: as before.
    pub(super) record: Option<Record>,
    /// When to look again, whatever happens.
    pub(super) wake: Option<Timestamp>,
}

impl Draft {
    pub(super) fn state(state: State) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }

    pub(super) fn step(step: Step, state: State) -> Self {
        Self {
            steps: vec![step],
            ..Self::state(state)
        }
    }

    pub(super) fn remember(self, record: Record) -> Self {
        Self {
            record: Some(record),
            ..self
        }
    }

    pub(super) fn wake(self, at: Option<Timestamp>) -> Self {
        Self { wake: at, ..self }
    }

    pub(super) fn for_node(self, node: &NodeView) -> Decision {
        let Self {
            steps,
            state,
            record,
            wake,
        } = self;
        Decision {
            node: node.name.clone(),
            steps,
            state,
            record: record.filter(|record| *record != node.record),
            wake,
        }
    }
}

pub(super) fn decide(
    policy: &Policy,
    node: &NodeView,
    slots: &mut Slots,
    halt: Option<&str>,
) -> Decision {
    let draft = match &node.grant {
        _ if policy.mode != Mode::Enforce => stop(policy, node),
        Some(grant) => granted(policy, node, grant),
        None if node.tainted => tainted(policy, node, halt),
        None => idle(policy, node, slots, halt),
    };
    draft.for_node(node)
}

/// Without enforcing everything is taken back: the grant at once, the taint when the agent has confirmed that nothing
/// runs any more.
fn stop(policy: &Policy, node: &NodeView) -> Draft {
    if node.grant.is_some() {
        return revoke(policy, node, End::NotEnforced);
    }
    if node.tainted && node.unconfirmed() {
        return Draft::state(unconfirmed());
    }
    let draft = Draft {
        steps: node.untaint(),
        ..Draft::default()
    };
    if node.tainted {
        draft
    } else {
        draft.remember(Record::default())
    }
}

fn unconfirmed() -> State {
    State::WaitingForAgent("the agent has not confirmed yet that nothing runs any more".to_owned())
}

fn revoke(policy: &Policy, node: &NodeView, end: End) -> Draft {
    let record = Record {
        revoked: Some(policy.now),
        ..node.record.acting(policy.now)
    };
    Draft::step(Step::EndGrant(end), unconfirmed()).remember(record)
}

fn idle(policy: &Policy, node: &NodeView, slots: &mut Slots, halt: Option<&str>) -> Draft {
    if let Some(why) = node.failure() {
        return failed(node, why);
    }
    if !node.wants() {
        let nothing = Draft::default();
        return if node.fresh {
            nothing.remember(Record::default())
        } else {
            nothing
        };
    }
    if policy.paused {
        return Draft::default();
    }
    if let Some(why) = halt {
        return Draft::state(State::Halted(why.to_owned()));
    }
    if let Some(draft) = postponed(policy, node) {
        return draft;
    }
    if node.unavailable == Some(Unavailable::NotReady) {
        return Draft::state(State::NotReady);
    }
    if !slots.take(node) {
        let (slots, taken) = (slots.total(), slots.taken());
        return Draft::state(State::Queued { slots, taken });
    }
    let record = node.record.begun(node.degraded(), policy.now);
    Draft::step(Step::Taint, State::WaitingForPods(node.holding())).remember(record)
}

fn postponed(policy: &Policy, node: &NodeView) -> Option<Draft> {
    let until = node.record.waits_until(&policy.fingerprint(), policy.now)?;
    let why = node.record.why.clone();
    Some(Draft::state(State::Postponed { until, why }).wake(Some(until)))
}

/// The taint is there first and seen in the cache before pods are counted, so that no new pod slips in between.
fn tainted(policy: &Policy, node: &NodeView, halt: Option<&str>) -> Draft {
    if node.driver == Driver::Starting {
        return Draft::state(State::Running("the driver pod starts or ends".to_owned()));
    }
    if node.unconfirmed() {
        return Draft::state(unconfirmed());
    }
    if let Some(why) = node.failure() {
        return failed(node, why);
    }
    if !node.wants() {
        return finish(node);
    }
    if policy.paused {
        return Draft::step(Step::Untaint, State::Idle);
    }
    if let Some(why) = halt {
        return Draft::step(Step::Untaint, State::Halted(why.to_owned()));
    }
    if let Some(draft) = postponed(policy, node) {
        let steps = vec![Step::Untaint];
        return Draft { steps, ..draft };
    }
    if !node.holders.is_empty() {
        return drain::drain(policy, node);
    }
    let step = node
        .driver_step()
        .or_else(|| node.wanted_plan().map(|plan| Step::Grant(grant_for(plan))));
    let draft = Draft {
        steps: step.into_iter().collect(),
        ..Draft::state(State::Running(String::new()))
    };
    draft.remember(node.record.trying(policy.now))
}

/// Nothing is wanted any more: the node is let go once it is as the cluster asks, and no worse than before.
fn finish(node: &NodeView) -> Draft {
    let ready = &node.ready;
    let let_go = Draft::step(Step::Untaint, State::Idle);
    if !node.fresh {
        let what = "the agent has not reported on the present specification yet";
        return Draft::state(State::WaitingForAgent(what.to_owned()));
    }
    match node.phase {
        _ if node.record.acted.is_none() => let_go,
        Phase::Ready | Phase::NotApplicable | Phase::Degraded => let_go,
        Phase::Pending | Phase::Observed | Phase::Planned | Phase::Progressing | Phase::Waiting => {
            let what = format!("the node is not Ready yet: {}", ready.message);
            Draft::state(State::WaitingForAgent(what))
        }
    }
}

/// Said once: the record holds under which specification.
fn failed(node: &NodeView, why: String) -> Draft {
    let known = node.record.failed.as_ref() == Some(&node.version);
    let record = Record {
        failed: Some(node.version.clone()),
        ..node.record.clone()
    };
    let steps = if known {
        Vec::new()
    } else {
        vec![Step::Fail(why.clone())]
    };
    Draft {
        steps,
        ..Draft::state(State::Failed(why))
    }
    .remember(record)
}

fn granted(policy: &Policy, node: &NodeView, grant: &Maintenance) -> Draft {
    if let Some(end) = ended(node, grant) {
        return end_grant(policy, node, end);
    }
    if let Some(why) = drain::overdue(policy, node).filter(|_| !node.begun(grant)) {
        let record = node.record.give_back(why, policy.fingerprint(), policy.now);
        let record = Record {
            revoked: Some(policy.now),
            ..record.acting(policy.now)
        };
        return Draft::step(Step::EndGrant(End::TimedOut), unconfirmed()).remember(record);
    }
    let steps = if node.tainted {
        Vec::new()
    } else {
        vec![Step::Taint]
    };
    let said = node.progress_of(grant).map(|said| said.message.clone());
    let draft = Draft {
        steps,
        ..Draft::state(State::Running(said.unwrap_or_default()))
    };
    let due = drain::due(policy, node).filter(|_| !node.begun(grant));
    draft.remember(node.record.acting(policy.now)).wake(due)
}

fn end_grant(policy: &Policy, node: &NodeView, end: End) -> Draft {
    match end {
        End::Completed => {
            Draft::step(Step::EndGrant(end), unconfirmed()).remember(node.record.acting(policy.now))
        }
        End::Failed => {
            let why = node.failure().unwrap_or_default();
            let draft = failed(node, why);
            let steps = std::iter::once(Step::EndGrant(end)).chain(draft.steps);
            Draft {
                steps: steps.collect(),
                ..draft
            }
        }
        End::HashChanged | End::PlanChanged | End::NotEnforced | End::TimedOut | End::Released => {
            revoke(policy, node, end)
        }
    }
}

fn ended(node: &NodeView, grant: &Maintenance) -> Option<End> {
    let progress = node.progress_of(grant);
    if progress.is_some_and(|progress| progress.completed) {
        return Some(End::Completed);
    }
    if grant.install_hash != node.install_hash {
        return Some(End::HashChanged);
    }
    if node.exhausted().is_some() {
        return Some(End::Failed);
    }
    let other = node
        .plan
        .as_ref()
        .is_none_or(|plan| plan.hash != grant.granted_plan);
    (node.fresh && progress.is_none() && other).then_some(End::PlanChanged)
}

/// The attempt follows from what the agent counted, so that it needs no memory here.
pub(super) fn grant_for(plan: &PlanStatus) -> Maintenance {
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

/// An action whose attempts are used up, for people.
pub(super) fn given_up(action: &ActionStatus) -> String {
    let ActionStatus {
        kind,
        target,
        attempts,
        message,
        ..
    } = action;
    let times = match attempts {
        1 => "once".to_owned(),
        several => format!("{several} times"),
    };
    format!("{kind} {target} failed {times}: {message}")
}
