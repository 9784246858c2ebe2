//! Whether a device may be handed out on this boot. Pure; [`crate::decide`] calls it for every device.
//!
//! Only evidence against a device refuses it. What is merely unknown keeps the last answer of this boot: an agent that
//! restarts, or a kubelet that is slow, takes nothing back. A device without an answer yet waits for one.

use crds::reasons::NodeReason;
use topology::fact::Fact;

use crate::findings::FindingId;
use crate::foreign::Foreign;

/// What is known of one device.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// What is known of its GPU's UUID; `None` where it has no GPU, or that is not there.
    pub uuid: Option<&'a Fact<String>>,
    /// Parts that are not there.
    pub missing: &'a [String],
    /// Why it cannot be put into a container.
    pub injection: Result<(), Refusal>,
    /// Why its NIC cannot reach its GPU's memory, where that is required.
    pub unreachable: Option<Refusal>,
    /// Who else advertises its GPU.
    pub foreign: Option<&'a Foreign>,
    /// Whether the kubelet answered.
    pub kubelet_answered: bool,
    /// Whether it was admitted before, on this boot.
    pub was_admitted: bool,
    /// Whether it may be offered at all now.
    pub offer: Offer,
}

/// Whether a device may be offered, whatever is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It may.
    Free,
    /// Only if it was before: what begins now could not be remembered.
    AsBefore,
    /// Not before its parts have changed.
    ChangesHands,
}

/// Evidence against a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: NodeReason,
    /// The finding that goes with it.
    pub finding: Option<FindingId>,
    /// What was seen and what helps.
    pub message: String,
}

/// The answer for one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may be handed out.
    Admitted(String),
    /// Evidence speaks against it.
    Refused(Refusal),
    /// Nothing is known yet.
    Waits(String),
}

impl Admission {
    /// Whether it may be handed out, and why.
    #[must_use]
    pub fn verdict(&self) -> (bool, String) {
        match self {
            Self::Admitted(why) => (true, why.clone()),
            Self::Refused(refusal) => (false, format!("{}: {}", refusal.reason, refusal.message)),
            Self::Waits(what) => (false, what.clone()),
        }
    }
}

/// Decides on one device.
#[must_use]
pub fn admit(case: &Case<'_>) -> Admission {
    if let Some(refusal) = evidence(case) {
        return Admission::Refused(refusal);
    }
    let held_back = match case.offer {
        Offer::ChangesHands => {
            Some("changes hands: it is off the list until its parts have changed")
        }
        Offer::AsBefore if !case.was_admitted => {
            Some("waits until the agent can write down which device has which parts")
        }
        Offer::AsBefore | Offer::Free => None,
    };
    if let Some(message) = held_back {
        return Admission::Waits(message.to_owned());
    }
    match (case.kubelet_answered, case.was_admitted) {
        (true, _) => Admission::Admitted("no evidence against it".to_owned()),
        (false, true) => Admission::Admitted(
            "admitted before on this boot; the kubelet does not answer now".to_owned(),
        ),
        (false, false) => Admission::Waits(
            "waits for the kubelet to say that no other plugin advertises the GPU".to_owned(),
        ),
    }
}

fn evidence(case: &Case<'_>) -> Option<Refusal> {
    if let Some(refusal) = case.uuid.and_then(nameless) {
        return Some(refusal);
    }
    if !case.missing.is_empty() {
        let message = format!("{} is not there any more", case.missing.join(", "));
        return Some(Refusal {
            reason: NodeReason::PairsRefused,
            finding: None,
            message,
        });
    }
    if let Some(foreign) = case.foreign {
        let (reason, message) = (NodeReason::ForeignGpuAdvertiser, foreign.reason());
        return Some(Refusal {
            reason,
            finding: None,
            message,
        });
    }
    case.injection
        .clone()
        .err()
        .or_else(|| case.unreachable.clone())
}

/// A GPU without a UUID. No driver and a UUID that cannot be read are two things with two remedies.
fn nameless(uuid: &Fact<String>) -> Option<Refusal> {
    let (finding, message) = match uuid {
        Fact::Known(_) => return None,
        Fact::Absent => (
            Some(FindingId::NoGpuDriver),
            "the GPU has no driver, so it has no UUID: install or load the NVIDIA driver"
                .to_owned(),
        ),
        // Whoever read it has said so in a finding of its own.
        Fact::Unreadable(why) => (
            None,
            format!("the GPU's UUID cannot be read, so nothing tells which GPU it is: {why}"),
        ),
    };
    Some(Refusal {
        reason: NodeReason::GpuInjectionUnavailable,
        finding,
        message,
    })
}

#[cfg(test)]
mod tests;
