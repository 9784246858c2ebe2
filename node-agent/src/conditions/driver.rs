//! Whether the RDMA driver is as the cluster asks.

use crds::reasons::NodeReason;

use super::{Judge, Verdict, verdict};
use crate::action::Explain;

impl Judge<'_> {
    /// Network functions of Mellanox, with or without a driver.
    pub(super) fn mellanox_functions(&self) -> usize {
        let functions = self.decision.machine.functions.values();
        let is_network = |class: Option<&u32>| class.is_some_and(|class| class >> 16 == 0x02);
        functions
            .filter(|f| f.vendor.known() == Some(&0x15b3) && is_network(f.class.known()))
            .count()
    }

    pub(super) fn driver(&self) -> Verdict {
        let (machine, state) = (&self.decision.machine, &self.observed.state);
        if machine.nics.is_empty() && self.mellanox_functions() > 0 {
            let message = "Mellanox network functions are there and no RDMA device is: load mlx5_ib, or install the RDMA driver";
            return verdict(false, NodeReason::DriverNotLoaded, message);
        }
        if machine.nics.is_empty() {
            return verdict(
                None,
                NodeReason::NotApplicable,
                "no RDMA device on this node",
            );
        }
        if let Some(unmet) = self.failed().or_else(|| self.unmet()) {
            return unmet;
        }
        let driver = if state.ofed() {
            "MLNX_OFED or DOCA-OFED"
        } else {
            "the kernel's own driver"
        };
        let devices = machine.nics.len();
        verdict(
            true,
            NodeReason::Kept,
            format!("{devices} RDMA devices run with {driver}; nothing of it is changed"),
        )
    }

    /// An action that failed, used-up budgets first.
    fn failed(&self) -> Option<Verdict> {
        let actions = &self.decision.plan.actions;
        let stuck = actions.iter().find(|action| action.is_given_up());
        let failed = actions.iter().find(|action| action.last_error.is_some());
        let (action, reason) = match (stuck, failed) {
            (Some(stuck), _) => (stuck, NodeReason::AttemptsExhausted),
            (None, Some(failed)) => (failed, NodeReason::ActionFailed),
            (None, None) => return None,
        };
        let what = format!("{} {}", action.change.kind(), action.change.target());
        Some(verdict(
            false,
            reason,
            format!("{what}: {}", action.message()),
        ))
    }

    /// Something that is asked of the driver, is not so, and has no action: the planner's findings say why.
    fn unmet(&self) -> Option<Verdict> {
        let reason = |id: &str| match id {
            "FOREIGN_OWNER" => Some(NodeReason::ForeignOwner),
            "HOST_UNREADABLE" => Some(NodeReason::HostUnreadable),
            "OPENIB_CONF_ABSENT"
            | "OPENIB_CONF_NOT_PLAIN"
            | "OPENIB_CONF_NOT_IN_EFFECT"
            | "OPENIB_CONF_WITHOUT_OPENIBD"
            | "COMPATIBILITY_REFUSED"
            | "DRIVER_CONTAINER_NOT_IN_EFFECT"
            | "PACKAGE_HELD" => Some(NodeReason::DriverMismatch),
            "UNSUPPORTED_PLATFORM" => Some(NodeReason::UnsupportedPlatform),
            _ => None,
        };
        let mut found = self.decision.plan.findings.iter();
        let (finding, reason) = found.find_map(|f| Some((f, reason(&f.id)?)))?;
        Some(verdict(
            false,
            reason,
            format!("{}: {}", finding.component, finding.message),
        ))
    }
}
