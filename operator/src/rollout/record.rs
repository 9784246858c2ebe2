//! What the rollout remembers of a node between two decisions, kept in an annotation of the `GpuRdmaNode`: times and
//! counts that no other object has. Pure. It is written before the step that it belongs to, so that an operator that
//! ends between the two takes the step again and never forgets one.

use crds::GpuRdmaNode;
use crds::names::ROLLOUT_STATE;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

/// Rounds of evictions before the node gives its slot back.
pub(super) const MOST_ROUNDS: u32 = 6;
/// Time between the first two rounds, doubled by each.
const FIRST_ROUND: SignedDuration = SignedDuration::from_secs(15);
/// Longest time between two rounds.
const LONGEST_ROUND: SignedDuration = SignedDuration::from_mins(5);
/// Time until a node that gave its slot back is tried again, doubled by each time.
const FIRST_RETRY: SignedDuration = SignedDuration::from_mins(10);
/// Longest time until then.
const LONGEST_RETRY: SignedDuration = SignedDuration::from_hours(2);
/// Refusals that are kept, and characters of each.
const REFUSALS: (usize, usize) = (3, 240);

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// When the node got its slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Reason of the Ready condition at that time, where the node was Degraded already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Rounds of evictions since then.
    #[serde(skip_serializing_if = "is_zero")]
    pub rounds: u32,
    /// Not before this time comes the next round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_round: Option<Timestamp>,
    /// Who refused evictions in the last round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// When something was first done to the node: a grant, a driver pod. From then on it is verified before it is let go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acted: Option<Timestamp>,
    /// When a grant was taken back before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// How often the node gave its slot back.
    #[serde(skip_serializing_if = "is_zero")]
    pub given_back: u32,
    /// Not before this time does it get one again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<Timestamp>,
    /// Why it gave the slot back.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The policy that it gave up under: another one is tried at once.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub under: String,
    /// The version of specification and annotation under which its maintenance failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Record {
    /// The record of a node. One that cannot be read counts as none: what it holds are waits, never permissions.
    #[must_use]
    pub fn of(node: &GpuRdmaNode) -> Self {
        let text = node.annotations().get(ROLLOUT_STATE);
        text.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// The value of the annotation; none for a record that says nothing.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        (*self != Self::default())
            .then(|| serde_json::to_string(self).ok())
            .flatten()
    }

    /// The record of a node that gets its slot now.
    #[must_use]
    pub(super) fn begun(&self, before: Option<String>, now: Timestamp) -> Self {
        Self {
            since: Some(now),
            before,
            given_back: self.given_back,
            ..Self::default()
        }
    }

    /// The record of a node whose grant or driver step is next: an earlier failure is over.
    #[must_use]
    pub(super) fn trying(&self, now: Timestamp) -> Self {
        Self {
            failed: None,
            ..self.acting(now)
        }
    }

    /// The record of a node on which something is done now.
    #[must_use]
    pub(super) fn acting(&self, now: Timestamp) -> Self {
        Self {
            acted: self.acted.or(Some(now)),
            revoked: None,
            ..self.clone()
        }
    }

    /// With one more round of evictions, which begins now.
    #[must_use]
    pub(super) fn next_round(&self, now: Timestamp) -> Self {
        let wait = doubled(FIRST_ROUND, self.rounds, LONGEST_ROUND);
        Self {
            rounds: self.rounds.saturating_add(1),
            next_round: now.checked_add(wait).ok(),
            ..self.clone()
        }
    }

    /// With what the round's evictions met.
    #[must_use]
    pub fn with_refusals(&self, refused: Vec<String>) -> Self {
        let (most, longest) = REFUSALS;
        let short = |text: String| text.chars().take(longest).collect();
        Self {
            refused: refused.into_iter().take(most).map(short).collect(),
            ..self.clone()
        }
    }

    /// The record of a node that gives its slot back now.
    #[must_use]
    pub(super) fn give_back(&self, why: String, under: String, now: Timestamp) -> Self {
        let wait = doubled(FIRST_RETRY, self.given_back, LONGEST_RETRY);
        Self {
            given_back: self.given_back.saturating_add(1),
            later: now.checked_add(wait).ok(),
            acted: self.acted,
            why,
            under,
            ..Self::default()
        }
    }

    /// Until when the node waits for its next turn, under this policy.
    #[must_use]
    pub(super) fn waits_until(&self, under: &str, now: Timestamp) -> Option<Timestamp> {
        self.later
            .filter(|later| *later > now && self.under == under)
    }
}

fn doubled(first: SignedDuration, times: u32, longest: SignedDuration) -> SignedDuration {
    let factor = 2_i32.saturating_pow(times.min(16));
    first.checked_mul(factor).unwrap_or(longest).min(longest)
}

#[cfg(test)]
mod tests;
