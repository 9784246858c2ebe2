//! Waiting for pods, or evicting them. Pure.
//!
//! Evictions come in rounds with a growing pause, all of a node's pods in each; a disruption budget that refuses is
//! named and asked again. After [`MOST_ROUNDS`] rounds, or when `upgrade.waitTimeout` is over, the node gives its slot
//! back, without its taint, and is tried again later: another node may be luckier.

use crds::cluster::Workloads;
use k8s_openapi::jiff::Timestamp;

use super::node::Draft;
use super::record::MOST_ROUNDS;
use super::{NodeView, Policy, State, Step};
use crate::conditions::listed;

/// A pod that really uses RDMA on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Why it is not evicted; none: it may be.
    pub stays: Option<Stays>,
}

/// Why a pod is not evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stays {
    /// It ends already.
    Ending,
    /// Its DaemonSet would start it again.
    DaemonSet,
    /// The kubelet runs it from a file.
    Mirror,
    /// Its annotation asks for it.
    DoNotDisrupt,
}

impl Holder {
    /// The pod, and why it is not evicted, for people.
    #[must_use]
    pub fn text(&self) -> String {
        let Self {
            namespace, name, ..
        } = self;
        match self.stays {
            None => format!("{namespace}/{name}"),
            Some(Stays::Ending) => format!("{namespace}/{name} (is ending)"),
            Some(Stays::DaemonSet) => {
                format!("{namespace}/{name} (of a DaemonSet, never evicted: keep it off this node)")
            }
            Some(Stays::Mirror) => {
                format!("{namespace}/{name} (a static pod: move its file away)")
            }
            Some(Stays::DoNotDisrupt) => {
                format!("{namespace}/{name} ({}=true)", crds::names::DO_NOT_DISRUPT)
            }
        }
    }
}

pub(super) fn drain(policy: &Policy, node: &NodeView) -> Draft {
    let record = &node.record;
    if record.since.is_none() {
        // The taint is older than the memory of it: the wait counts from now.
        let record = record.begun(node.degraded(), policy.now);
        return waiting(policy, node).remember(record);
    }
    if let Some(why) = overdue(policy, node) {
        return give_back(policy, node, why);
    }
    let evictable: Vec<_> = node
        .holders
        .iter()
        .filter(|pod| pod.stays.is_none())
        .collect();
    if policy.workloads == Workloads::Wait || evictable.is_empty() {
        return waiting(policy, node);
    }
    let soonest = |next: Timestamp| due(policy, node).map_or(next, |due| due.min(next));
    if let Some(next) = record.next_round.filter(|next| *next > policy.now) {
        return evicting(node, record.rounds, next, &record.refused).wake(Some(soonest(next)));
    }
    if record.rounds >= MOST_ROUNDS {
        let why = format!(
            "{MOST_ROUNDS} rounds of evictions left these pods: {}{}",
            listed(&node.holding()),
            refusals(&record.refused)
        );
        return give_back(policy, node, why);
    }
    let pods = evictable
        .into_iter()
        .map(|pod| (pod.namespace.clone(), pod.name.clone()));
    let next = record.next_round(policy.now);
    let again = next.next_round.unwrap_or(policy.now);
    let draft = evicting(node, next.rounds, again, &record.refused);
    Draft {
        steps: vec![Step::Evict(pods.collect())],
        ..draft
    }
    .remember(next)
    .wake(Some(soonest(again)))
}

fn waiting(policy: &Policy, node: &NodeView) -> Draft {
    Draft::state(State::WaitingForPods(node.holding())).wake(due(policy, node))
}

fn evicting(node: &NodeView, round: u32, next: Timestamp, refused: &[String]) -> Draft {
    Draft::state(State::Evicting {
        pods: node.holding(),
        round,
        next,
        refused: refused.to_vec(),
    })
}

/// The record first: with it the taint goes, even if the operator ends in between.
fn give_back(policy: &Policy, node: &NodeView, why: String) -> Draft {
    let under = policy.fingerprint();
    let record = node.record.give_back(why.clone(), under, policy.now);
    let until = record.later.unwrap_or(policy.now);
    let step = Step::Postpone(format!("{why}. It is tried again at {until}."));
    Draft {
        steps: vec![Step::Untaint, step],
        ..Draft::state(State::Postponed { until, why })
    }
    .remember(record)
    .wake(Some(until))
}

/// When the wait is over; never without `upgrade.waitTimeout`.
pub(super) fn due(policy: &Policy, node: &NodeView) -> Option<Timestamp> {
    let since = node.record.since?;
    since.checked_add(policy.wait_timeout?).ok()
}

/// Why the wait is over.
pub(super) fn overdue(policy: &Policy, node: &NodeView) -> Option<String> {
    let due = due(policy, node).filter(|due| *due <= policy.now)?;
    let said = node
        .grant
        .as_ref()
        .and_then(|grant| node.progress_of(grant));
    let holding = node.holding();
    let left = match said.map(|said| said.message.as_str()) {
        Some(message) if !message.is_empty() => message.to_owned(),
        _ if holding.is_empty() => "the agent has not begun".to_owned(),
        _ => format!("still there: {}", listed(&holding)),
    };
    Some(format!(
        "spec.upgrade.waitTimeout was over at {due}; {left}{}",
        refusals(&node.record.refused)
    ))
}

fn refusals(refused: &[String]) -> String {
    if refused.is_empty() {
        return String::new();
    }
    format!("; refused: {}", listed(refused))
}
