//! Conditions of a `GpuRdmaNode`: one judgement each, and times that move on transition only. Pure; [`crate::report`]
//! calls it.

use crds::cluster::{GpuDirectMode, Mode};
use crds::node::{Cost, Phase};
use crds::reasons::{NodeCondition, NodeReason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use topology::machine::PortState;
use topology::policy::ResourceKind;

use crate::action::Blocked;
use crate::decide::Decision;
use crate::desired::Desired;
use crate::findings::FindingId;
use crate::observed::Observed;

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

fn verdict(status: impl Into<Option<bool>>, reason: NodeReason, message: impl Into<String>) -> Verdict {
    (status.into(), reason, message.into())
}

impl Judge<'_> {
    /// Every condition, in the order in which the status lists them, and the phase.
    pub(crate) fn all(&self) -> (Vec<Draft>, Phase) {
        let (driver, gpu_direct, fabric) = (self.driver(), self.gpu_direct(), self.fabric());
        let advertised = self.advertised();
        let (ready, phase) = self.ready(&[&driver, &fabric, &advertised]);
        let drafts = [
            (NodeCondition::Ready, ready),
            (NodeCondition::DriverReady, driver),
            (NodeCondition::GpuDirectReady, gpu_direct),
            (NodeCondition::FabricReady, fabric),
            (NodeCondition::Advertised, advertised),
        ];
        let draft = |(kind, (status, reason, message))| Draft { kind, status, reason, message };
        (drafts.into_iter().map(draft).collect(), phase)
    }

    /// Whether the node has what this is about at all.
    pub(crate) fn applicable(&self) -> bool {
        let machine = &self.decision.machine;
        !machine.gpus.is_empty() && (!machine.nics.is_empty() || self.mellanox_functions() > 0)
    }

    /// Network functions of Mellanox, with or without a driver.
    fn mellanox_functions(&self) -> usize {
        let functions = self.decision.machine.functions.values();
        let is_network = |class: Option<&u32>| class.is_some_and(|class| class >> 16 == 0x02);
        functions
            .filter(|f| f.vendor.known() == Some(&0x15b3) && is_network(f.class.known()))
            .count()
    }

    fn driver(&self) -> Verdict {
        let (machine, state) = (&self.decision.machine, &self.observed.state);
        if machine.nics.is_empty() && self.mellanox_functions() > 0 {
            let message = "Mellanox network functions are there and no RDMA device is: load mlx5_ib, or install the RDMA driver";
            return verdict(false, NodeReason::DriverNotLoaded, message);
        }
        if machine.nics.is_empty() {
            return verdict(None, NodeReason::NotApplicable, "no RDMA device on this node");
        }
        if let Some(stuck) = self.decision.plan.actions.iter().find(|a| a.blocked == Some(Blocked::Exhausted)) {
            let what = format!("{} {}: {}", stuck.change.kind(), stuck.change.target(), stuck.message());
            return verdict(false, NodeReason::AttemptsExhausted, what);
        }
        if let Some(failed) = self.decision.plan.actions.iter().find(|a| a.last_error.is_some()) {
            let what = format!("{} {}: {}", failed.change.kind(), failed.change.target(), failed.message());
            return verdict(false, NodeReason::ActionFailed, what);
        }
        let driver = if state.ofed { "MLNX_OFED or DOCA-OFED" } else { "the kernel's own driver" };
        let devices = machine.nics.len();
        verdict(true, NodeReason::Kept, format!("{devices} RDMA devices run with {driver}; nothing of it is changed"))
    }

    fn gpu_direct(&self) -> Verdict {
        if self.desired.config.gpu_direct.mode == GpuDirectMode::Keep {
            let message = "gpuDirect.mode is Keep: what is there is left, and not judged";
            return verdict(None, NodeReason::Kept, message);
        }
        let message = "gpuDirect.mode is set and this version does not act on it";
        verdict(None, NodeReason::NotYetSupported, message)
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
        let nics = machine.nics.iter().filter(|nic| used.contains(&nic.name().as_str()));
        let (mut down, mut unknown) = (Vec::new(), Vec::new());
        for nic in nics {
            let states: Vec<_> = nic.ports.iter().map(|port| port.state.known()).collect();
            if states.contains(&Some(&PortState::Active)) {
                continue;
            }
            let list = if states.iter().any(Option::is_none) { &mut unknown } else { &mut down };
            list.push(nic.name());
        }
        if !down.is_empty() {
            let message = format!("no active port: {}; check cable, switch port and, on InfiniBand, the subnet manager", down.join(", "));
            return verdict(false, NodeReason::LinkDown, message);
        }
        if !unknown.is_empty() {
            let message = format!("port state cannot be read: {}", unknown.join(", "));
            return verdict(None, NodeReason::HostUnreadable, message);
        }
        if used.is_empty() {
            return verdict(None, NodeReason::NotApplicable, "no device has a NIC");
        }
        verdict(true, NodeReason::Kept, "every NIC in use has an active port; nothing else is asked")
    }

    fn advertised(&self) -> Verdict {
        match self.desired.mode {
            Mode::Observe => return verdict(false, NodeReason::Observed, "mode Observe advertises nothing"),
            Mode::Plan => return verdict(false, NodeReason::Planned, "mode Plan advertises nothing"),
            Mode::Enforce => {}
        }
        let kubelet = match &self.observed.kubelet {
            Ok(kubelet) => kubelet,
            Err(why) => return verdict(None, NodeReason::HostUnreadable, why.clone()),
        };
        let resources = &self.decision.node_file.resources;
        let admitted = |r: &&topology::node_file::NodeResource| r.devices.iter().any(|d| d.admitted);
        let wanted: Vec<&str> = resources.iter().filter(admitted).map(|r| r.name.as_str()).collect();
        let absent = |name: &&&str| kubelet.allocatable.get(**name).is_none_or(|ids| ids.is_empty());
        let absent: Vec<&str> = wanted.iter().filter(absent).copied().collect();
        if !absent.is_empty() {
            let message = format!("the kubelet has no {}: the device plugin has not registered yet", absent.join(", "));
            return verdict(false, NodeReason::PluginNotRegistered, message);
        }
        if wanted.is_empty() {
            return verdict(false, NodeReason::NoAdmittedPairs, self.refusals());
        }
        verdict(true, NodeReason::AsSpecified, format!("the kubelet has {}", wanted.join(", ")))
    }

    fn refusals(&self) -> String {
        let devices = self.decision.node_file.resources.iter().flat_map(|r| &r.devices);
        let refused = devices.filter(|device| !device.admitted);
        let name = |d: &topology::node_file::NodeDevice| d.gpu.as_ref().map_or(d.id.clone(), |gpu| gpu.name.clone());
        let mut shown: Vec<String> = refused.map(|d| format!("{}: {}", name(d), d.reason)).take(3).collect();
        if shown.is_empty() {
            shown.push("no GPU has a NIC within maxDistance; the findings say why".to_owned());
        }
        shown.join("; ")
    }

    fn ready(&self, parts: &[&Verdict]) -> (Verdict, Phase) {
        if !self.applicable() {
            let message = "the node has no GPU or no RDMA NIC; nothing is done here";
            return (verdict(false, NodeReason::NotApplicable, message), Phase::NotApplicable);
        }
        match self.desired.mode {
            Mode::Observe => {
                let message = "mode Observe: findings and pairs are reported, nothing is changed";
                (verdict(false, NodeReason::Observed, message), Phase::Observed)
            }
            Mode::Plan => {
                let message = "mode Plan: the plan is published, nothing is changed";
                (verdict(false, NodeReason::Planned, message), Phase::Planned)
            }
            Mode::Enforce => self.enforced(parts),
        }
    }

    fn enforced(&self, parts: &[&Verdict]) -> (Verdict, Phase) {
        if let Some(verdict) = self.wrong() {
            return (verdict, Phase::Degraded);
        }
        if let Some((verdict, phase)) = self.pending() {
            return (verdict, phase);
        }
        if let Some(verdict) = self.devices() {
            return (verdict, Phase::Degraded);
        }
        let Some((status, reason, message)) = parts.iter().find(|part| part.0 == Some(false)) else {
            let message = "the node is as the cluster asks";
            return (verdict(true, NodeReason::AsSpecified, message), Phase::Ready);
        };
        let waits = *reason == NodeReason::PluginNotRegistered;
        let phase = if waits { Phase::Waiting } else { Phase::Degraded };
        (verdict(*status, *reason, message.clone()), phase)
    }

    /// What a person must change in the cluster.
    fn wrong(&self) -> Option<Verdict> {
        if !self.desired.unsupported.is_empty() {
            let fields = self.desired.unsupported.join(", ");
            let message = format!("this version does not act on {fields}: take the fields out");
            return Some(verdict(false, NodeReason::NotYetSupported, message));
        }
        let invalid = FindingId::InvalidSpec.row().0;
        let finding = self.decision.findings.iter().find(|f| f.id == invalid)?;
        let message = format!("{}: {}", finding.component, finding.message);
        Some(verdict(false, NodeReason::ErrorsFound, message))
    }

    /// What is planned and not done.
    fn pending(&self) -> Option<(Verdict, Phase)> {
        let actions = &self.decision.plan.actions;
        let first = actions.iter().find(|a| a.blocked != Some(Blocked::Exhausted))?;
        let what = format!("{} {}", first.change.kind(), first.change.target());
        if self.desired.paused {
            let message = format!("paused with {} actions planned, first {what}", actions.len());
            return Some((verdict(false, NodeReason::Paused, message), Phase::Waiting));
        }
        if actions.iter().any(|a| a.change.cost() > Cost::None) {
            let message = format!("{what} waits for the operator's grant");
            return Some((verdict(false, NodeReason::WaitingForGrant, message), Phase::Waiting));
        }
        let message = [what, first.message()].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>();
        let reason = if first.last_error.is_some() { NodeReason::ActionFailed } else { NodeReason::Progressing };
        Some((verdict(false, reason, message.join(": ")), Phase::Progressing))
    }

    /// Devices that are not handed out.
    fn devices(&self) -> Option<Verdict> {
        let devices: Vec<_> = self.decision.node_file.resources.iter().flat_map(|r| &r.devices).collect();
        let admitted = devices.iter().filter(|d| d.admitted).count();
        let pairs_asked = self.decision.node_file.resources.iter().any(|r| r.kind == ResourceKind::Pair);
        let pairs = self.decision.pairs().count();
        if admitted > 0 && admitted == devices.len() && (pairs > 0 || !pairs_asked) {
            return None;
        }
        let reason = match (admitted, self.decision.refused.first()) {
            (0, Some(reason)) if *reason != NodeReason::PairsRefused => *reason,
            (0, _) => NodeReason::NoAdmittedPairs,
            _ if admitted == devices.len() => NodeReason::NoAdmittedPairs,
            _ => NodeReason::PairsRefused,
        };
        let message = format!("{admitted} of {} devices may be handed out; {}", devices.len(), self.refusals());
        Some(verdict(false, reason, message))
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
        .map(|Draft { kind, status, reason, message }| {
            let status = match status {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            };
            let old = before.iter().find(|c| c.type_ == kind.as_str() && c.status == status);
            Condition {
                type_: kind.into(),
                status: status.to_owned(),
                reason: reason.into(),
                message,
                observed_generation: Some(generation),
                // Kubernetes keeps whole seconds; a finer time would differ from what comes back.
                last_transition_time: old.map_or_else(|| Time(seconds(now)), |c| c.last_transition_time.clone()),
            }
        })
        .collect()
}

fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
