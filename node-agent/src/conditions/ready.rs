//! Whether the node is as the cluster asks, and its phase: the first thing that stands in the way decides.

use crds::cluster::Mode;
use crds::node::{Cost, Phase};
use crds::reasons::NodeReason;
use topology::policy::ResourceKind;

use super::{Judge, Verdict, verdict};
use crate::action::Explain;
use crate::findings::FindingId;

impl Judge<'_> {
    pub(super) fn ready(&self, parts: &[&Verdict]) -> (Verdict, Phase) {
        if !self.applicable() {
            let message = "the node has no GPU or no RDMA NIC; nothing is done here";
            return (
                verdict(false, NodeReason::NotApplicable, message),
                Phase::NotApplicable,
            );
        }
        match self.desired.mode {
            Mode::Observe => {
                let message = "mode Observe: findings and pairs are reported, nothing is changed";
                (
                    verdict(false, NodeReason::Observed, message),
                    Phase::Observed,
                )
            }
            Mode::Plan => {
                let message = "mode Plan: the plan is published, nothing is changed";
                (verdict(false, NodeReason::Planned, message), Phase::Planned)
            }
            Mode::Enforce => self.enforced(parts),
        }
    }

    fn enforced(&self, parts: &[&Verdict]) -> (Verdict, Phase) {
        if self.desired.restore && self.decision.plan.actions.is_empty() {
            let message = "what this agent changed on the host is taken back";
            let verdict = verdict(true, NodeReason::AsSpecified, message);
            return (verdict, Phase::Ready);
        }
        if let Some(verdict) = self.wrong().filter(|_| !self.desired.restore) {
            return (verdict, Phase::Degraded);
        }
        if let Some((verdict, phase)) = self.pending() {
            return (verdict, phase);
        }
        if let Some(verdict) = self.devices() {
            return (verdict, Phase::Degraded);
        }
        let Some((status, reason, message)) = parts.iter().find(|part| part.0 == Some(false))
        else {
            let message = "the node is as the cluster asks";
            return (
                verdict(true, NodeReason::AsSpecified, message),
                Phase::Ready,
            );
        };
        let waits = *reason == NodeReason::PluginNotRegistered;
        let phase = if waits {
            Phase::Waiting
        } else {
            Phase::Degraded
        };
        (verdict(*status, *reason, message.clone()), phase)
    }

    /// What a person must change in the cluster.
    fn wrong(&self) -> Option<Verdict> {
        let invalid = FindingId::InvalidSpec.row().0;
        let finding = self.decision.findings.iter().find(|f| f.id == invalid)?;
        let message = format!("{}: {}", finding.component, finding.message);
        Some(verdict(false, NodeReason::ErrorsFound, message))
    }

    /// What is planned and not done.
    fn pending(&self) -> Option<(Verdict, Phase)> {
        let actions = &self.decision.plan.actions;
        let first = actions.iter().find(|a| !a.is_given_up())?;
        let what = format!("{} {}", first.change.kind(), first.change.target());
        if self.desired.paused {
            let message = format!(
                "paused with {} actions planned, first {what}",
                actions.len()
            );
            return Some((verdict(false, NodeReason::Paused, message), Phase::Waiting));
        }
        if let Some(accepted) = &self.decision.memory.maintenance {
            let decision = self.decision;
            let attempts = &decision.memory.attempts;
            let status = accepted.status(&decision.plan, attempts, &decision.blockers);
            let message = format!("granted maintenance runs: {}", status.message);
            let verdict = verdict(false, NodeReason::MaintenanceInProgress, message);
            return Some((verdict, Phase::Waiting));
        }
        if actions.iter().any(|a| a.change.cost() > Cost::None) {
            let message = format!("{what} waits for the operator's grant");
            return Some((
                verdict(false, NodeReason::WaitingForGrant, message),
                Phase::Waiting,
            ));
        }
        let message = [what, first.message()]
            .into_iter()
            .filter(|t| !t.is_empty())
            .collect::<Vec<_>>();
        let reason = if first.last_error.is_some() {
            NodeReason::ActionFailed
        } else {
            NodeReason::Progressing
        };
        Some((
            verdict(false, reason, message.join(": ")),
            Phase::Progressing,
        ))
    }

    /// Devices that are not handed out.
    fn devices(&self) -> Option<Verdict> {
        let devices: Vec<_> = self
            .decision
            .node_file
            .resources
            .iter()
            .flat_map(|r| &r.devices)
            .collect();
        let admitted = devices.iter().filter(|d| d.admitted).count();
        let pairs_asked = self
            .decision
            .node_file
            .resources
            .iter()
            .any(|r| r.kind == ResourceKind::Pair);
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
        let message = format!(
            "{admitted} of {} devices may be handed out; {}",
            devices.len(),
            self.refusals()
        );
        Some(verdict(false, reason, message))
    }

    pub(super) fn refusals(&self) -> String {
        let devices = self
            .decision
            .node_file
            .resources
            .iter()
            .flat_map(|r| &r.devices);
        let refused = devices.filter(|device| !device.admitted);
        let name = |d: &topology::node_file::NodeDevice| {
            d.gpu.as_ref().map_or(d.id.clone(), |gpu| gpu.name.clone())
        };
        let mut shown: Vec<String> = refused
            .map(|d| format!("{}: {}", name(d), d.reason))
            .take(3)
            .collect();
        if shown.is_empty() {
            shown.push("no GPU has a NIC within maxDistance; the findings say why".to_owned());
        }
        shown.join("; ")
    }
}
