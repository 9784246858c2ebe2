//! Conditions of a cluster: set by type, sorted, with a time that moves only when the status does. Pure.

use crds::reasons::{ClusterCondition, ClusterReason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Longest message that the CRD accepts. It counts characters; bytes are never fewer.
const LONGEST_MESSAGE: usize = 1024;

/// A condition as it should be now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its type.
    pub kind: ClusterCondition,
    /// Whether it holds.
    pub holds: bool,
    /// Why.
    pub reason: ClusterReason,
    /// For people: what, where, and what to do.
    pub message: String,
}

/// A condition whose status changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Its type.
    pub kind: ClusterCondition,
    /// Whether it holds now.
    pub holds: bool,
    /// Why.
    pub reason: ClusterReason,
    /// For people.
    pub message: String,
}

/// The conditions now, in the order of their types, and those whose status changed.
#[must_use]
pub fn upsert(
    before: &[Condition],
    wanted: Vec<Wanted>,
    generation: Option<i64>,
    now: Timestamp,
) -> (Vec<Condition>, Vec<Transition>) {
    let mut transitions = Vec::new();
    let mut conditions = Vec::new();
    for Wanted {
        kind,
        holds,
        reason,
        message,
    } in wanted
    {
        let status = if holds { "True" } else { "False" };
        let old = before.iter().find(|old| old.type_ == kind.as_str());
        let since = old
            .filter(|old| old.status == status)
            .map(|old| old.last_transition_time.clone());
        if since.is_none() {
            transitions.push(Transition {
                kind,
                holds,
                reason,
                message: message.clone(),
            });
        }
        conditions.push(Condition {
            type_: kind.into(),
            status: status.to_owned(),
            reason: reason.into(),
            message: shortened(message, LONGEST_MESSAGE),
            observed_generation: generation,
            last_transition_time: since.unwrap_or(Time(now)),
        });
    }
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    (conditions, transitions)
}

/// A text cut to so many bytes, between characters: the API server refuses a whole status for one long text.
#[must_use]
pub fn shortened(mut text: String, longest: usize) -> String {
    text.truncate(text.floor_char_boundary(longest));
    text
}

/// `a, b, c and 4 more`: enough to begin with, in a line that can be read.
#[must_use]
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<_> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests;
