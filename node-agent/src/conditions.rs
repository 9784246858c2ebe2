//! Conditions of a `GpuRdmaNode`: one judgement each, and times that move on transition only. Pure; [`crate::report`]
//! calls it.

use std::collections::BTreeSet;

use crds::cluster::{GpuDirectMode, Mode};
use crds::node::Phase;
use crds::reasons::{NodeCondition, NodeReason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use topology::machine::PortState;

use crate::decide::Decision;
use crate::desired::Desired;
use crate::findings::{FindingId, shorten};
use crate::gpu_direct::{Reach, Way};
use crate::observed::Observed;

mod driver;
mod ready;

/// Longest message; the API's own limit is 1024.
const MESSAGE_LIMIT: usize = 512;

/// A condition before it has a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Its type.
    pub kind: NodeCondition,
    /// `True`, `False` or, with `None`, `Unknown`.
    pub status: Option<bool>,
    /// Its reason.
    pub reason: NodeReason,
    /// What is so, and what helps.
    pub message: String,
}

/// What the conditions are judged on.
pub(crate) struct Judge<'a> {
    pub(crate) observed: &'a Observed,
    pub(crate) desired: &'a Desired,
    pub(crate) decision: &'a Decision,
}

type Verdict = (Option<bool>, NodeReason, String);

fn verdict(
    status: impl Into<Option<bool>>,
    reason: NodeReason,
    message: impl Into<String>,
) -> Verdict {
    (status.into(), reason, message.into())
}

impl Judge<'_> {
    /// Every condition, in the order in which the status lists them, and the phase.
    pub(crate) fn all(&self) -> (Vec<Draft>, Phase) {
        let (driver, gpu_direct, fabric) = (self.driver(), self.gpu_direct(), self.fabric());
        let advertised = self.advertised();
        let (ready, phase) = self.ready(&[&driver, &gpu_direct, &fabric, &advertised]);
        let drafts = [
            (NodeCondition::Ready, ready),
            (NodeCondition::DriverReady, driver),
            (NodeCondition::GpuDirectReady, gpu_direct),
            (NodeCondition::FabricReady, fabric),
            (NodeCondition::Advertised, advertised),
        ];
        let draft = |(kind, (status, reason, message))| Draft {
            kind,
            status,
            reason,
            message,
        };
        (drafts.into_iter().map(draft).collect(), phase)
    }

    /// Whether the node has what this is about at all.
    pub(crate) fn applicable(&self) -> bool {
        let machine = &self.decision.machine;
        !machine.gpus.is_empty() && (!machine.nics.is_empty() || self.mellanox_functions() > 0)
    }

    fn gpu_direct(&self) -> Verdict {
        if self.desired.config.gpu_direct.mode == GpuDirectMode::Keep {
            let message = "gpuDirect.mode is Keep: what is there is left, and not judged";
            return verdict(None, NodeReason::Kept, message);
        }
        let choice = &self.decision.gpu_direct;
        let stale = FindingId::GpuModulesStale.row().0;
        let stale = self
            .decision
            .findings
            .iter()
            .find(|finding| finding.id == stale);
        match (&choice.reach, stale) {
            (Reach::Way(Way::Peermem), Some(stale)) => {
                verdict(false, NodeReason::ModulesStale, stale.message.clone())
            }
            (Reach::Way(_), _) => verdict(true, NodeReason::AsSpecified, choice.reason.clone()),
            (Reach::AfterLoad, _) => {
                let message = format!("{}, and is not loaded yet", choice.reason);
                verdict(false, NodeReason::Progressing, message)
            }
            (Reach::Unknown, _) => verdict(None, NodeReason::HostUnreadable, choice.reason.clone()),
            (Reach::Nothing, _) => verdict(
                false,
                NodeReason::GpuDirectUnavailable,
                choice.reason.clone(),
            ),
        }
    }

    /// Ports of the NICs that pairs have.
    fn fabric(&self) -> Verdict {
        let used: Vec<&str> = self
            .decision
            .node_file
            .resources
            .iter()
            .flat_map(|resource| &resource.devices)
            .flat_map(|device| device.nics.iter().map(|nic| nic.rdma.as_str()))
            .collect();
        let machine = &self.decision.machine;
        let nics = machine
            .nics
            .iter()
            .filter(|nic| used.contains(&nic.name().as_str()));
        let (mut down, mut unknown) = (Vec::new(), Vec::new());
        for nic in nics {
            let states: Vec<_> = nic.ports.iter().map(|port| port.state.known()).collect();
            if states.contains(&Some(&PortState::Active)) {
                continue;
            }
            let list = if states.iter().any(Option::is_none) {
                &mut unknown
            } else {
                &mut down
            };
            list.push(nic.name());
        }
        if !down.is_empty() {
            let message = format!(
                "no active port: {}; check cable, switch port and, on InfiniBand, the subnet manager",
                down.join(", ")
            );
            return verdict(false, NodeReason::LinkDown, message);
        }
        if !unknown.is_empty() {
            let message = format!("port state cannot be read: {}", unknown.join(", "));
            return verdict(None, NodeReason::HostUnreadable, message);
        }
        if used.is_empty() {
            return verdict(None, NodeReason::NotApplicable, "no device has a NIC");
        }
        verdict(
            true,
            NodeReason::Kept,
            "every NIC in use has an active port; nothing else is asked",
        )
    }

    fn advertised(&self) -> Verdict {
        match self.desired.mode {
            Mode::Observe => {
                return verdict(
                    false,
                    NodeReason::Observed,
                    "mode Observe advertises nothing",
                );
            }
            Mode::Plan => {
                return verdict(false, NodeReason::Planned, "mode Plan advertises nothing");
            }
            Mode::Enforce => {}
        }
        let Some(kubelet) = self.observed.kubelet.shown() else {
            let why = self.observed.kubelet.silence().unwrap_or_default();
            return verdict(None, NodeReason::HostUnreadable, why);
        };
        let resources = &self.decision.node_file.resources;
        let admitted =
            |r: &&topology::node_file::NodeResource| r.devices.iter().any(|d| d.admitted);
        let wanted: Vec<&str> = resources
            .iter()
            .filter(admitted)
            .map(|r| r.name.as_str())
            .collect();
        let absent = |name: &&&str| {
            kubelet
                .allocatable
                .get(**name)
                .is_none_or(BTreeSet::is_empty)
        };
        let absent: Vec<&str> = wanted.iter().filter(absent).copied().collect();
        if !absent.is_empty() {
            let message = format!(
                "the kubelet has no {}: the device plugin has not registered yet",
                absent.join(", ")
            );
            return verdict(false, NodeReason::PluginNotRegistered, message);
        }
        if wanted.is_empty() {
            return verdict(false, NodeReason::NoAdmittedPairs, self.refusals());
        }
        verdict(
            true,
            NodeReason::AsSpecified,
            format!("the kubelet has {}", wanted.join(", ")),
        )
    }
}

/// The conditions with their times: those of `before` while the status is the same.
#[must_use]
pub fn with_times(
    drafts: Vec<Draft>,
    before: &[Condition],
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    drafts
        .into_iter()
        .map(
            |Draft {
                 kind,
                 status,
                 reason,
                 message,
             }| {
                let status = match status {
                    Some(true) => "True",
                    Some(false) => "False",
                    None => "Unknown",
                };
                let old = before
                    .iter()
                    .find(|c| c.type_ == kind.as_str() && c.status == status);
                Condition {
                    type_: kind.into(),
                    status: status.to_owned(),
                    reason: reason.into(),
                    message: shorten(&message, MESSAGE_LIMIT),
                    observed_generation: Some(generation),
                    // Kubernetes keeps whole seconds; a finer time would differ from what comes back.
                    last_transition_time: old
                        .map_or_else(|| Time(seconds(now)), |c| c.last_transition_time.clone()),
                }
            },
        )
        .collect()
}

fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
