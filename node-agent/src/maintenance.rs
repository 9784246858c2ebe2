//! Granted maintenance as the agent keeps it in `/var/lib/gpurdma/maintenance.json`: the list of costly actions that the
//! operator granted, and how far they are. Pure; [`crate::apply`] writes the file before the first of them runs.
//!
//! A grant is taken in only while the present plan is the granted one. From then on the agent plans anew at every turn and
//! runs what of the plan is on the list, so that partial execution, a killed agent and a reboot in the middle change
//! nothing. Another install hash, another grant or none revokes it; a turn runs one costly action, so that this counts
//! before the next one.
//!
//! An action that costs a reboot is prepared first: what it writes may be on disk, and out of the plan, and not in effect. The
//! host is rebooted once nothing else of the list is left, and only after that boot it is judged.

use std::collections::BTreeSet;

use crds::cluster::Mode;
use crds::node::{Cost, Maintenance, MaintenanceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::action::{Action, Explain};
use crate::attempts::Attempts;
use crate::desired::Desired;
use crate::findings::shorten;
use crate::planner::Plan;

/// How long a host may take to go down once it was asked to reboot.
pub const REBOOT_PATIENCE: SignedDuration = SignedDuration::from_mins(10);
/// Longest message in the status.
const MESSAGE_LIMIT: usize = 480;

/// A grant that was taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The grant.
    pub grant: Maintenance,
    /// The costly actions of the granted plan, by their attempt keys.
    pub actions: BTreeSet<String>,
    /// When the first of them began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The last reboot that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot: Option<Reboot>,
}

/// A reboot that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reboot {
    /// The boot that was to end.
    pub boot_id: String,
    /// When.
    pub at: Time,
}

/// What comes next for the host as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, or actions.
    Actions,
    /// Everything is prepared: the host reboots.
    Reboot,
    /// It was asked to and has not gone down yet.
    GoesDown,
    /// It was asked to and did not go down in time.
    DidNotGoDown,
}

/// The grant that holds now. `before` is the one that was taken in earlier.
#[must_use]
pub fn accepted(before: Option<&Accepted>, desired: &Desired, plan: &Plan) -> Option<Accepted> {
    let grant = desired.grant.as_ref()?;
    if desired.mode != Mode::Enforce || grant.install_hash != desired.install_hash {
        return None;
    }
    if let Some(same) = before.filter(|before| before.grant == *grant) {
        return Some(same.clone());
    }
    let status = plan.status(&desired.install_hash).ok().flatten()?;
    let costly = plan.actions.iter().filter(|action| is_costly(action));
    (status.hash == grant.granted_plan).then(|| Accepted {
        grant: grant.clone(),
        actions: costly.map(|action| action.change.attempt_key()).collect(),
        started_at: None,
        reboot: None,
    })
}

/// Whether an action needs a grant.
#[must_use]
pub fn is_costly(action: &Action) -> bool {
    action.change.cost() > Cost::None
}

impl Accepted {
    /// Whether the grant is for this action.
    #[must_use]
    pub fn covers(&self, action: &Action) -> bool {
        self.actions.contains(&action.change.attempt_key())
    }

    /// Costly actions of the list that the plan still has.
    fn left<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a Action> {
        let ours = move |action: &&Action| is_costly(action) && self.covers(action);
        plan.actions.iter().filter(ours)
    }

    /// Whether something of the list is prepared and has not had its reboot.
    fn wants_reboot(&self, attempts: &Attempts) -> bool {
        let mut prepared = attempts.prepared_keys();
        prepared.any(|key| self.actions.contains(key))
    }

    /// What comes next for the host, where the actions that could run have run.
    #[must_use]
    pub fn next(&self, plan: &Plan, attempts: &Attempts, boot_id: &str, now: Timestamp) -> Next {
        if !self.wants_reboot(attempts) || !self.left(plan).all(Action::is_prepared) {
            return Next::Actions;
        }
        match self
            .reboot
            .as_ref()
            .filter(|asked| asked.boot_id == boot_id)
        {
            None => Next::Reboot,
            Some(asked) => {
                let waited = now.duration_since(asked.at.0);
                // A clock that was set back must not end the patience early.
                if waited < REBOOT_PATIENCE {
                    Next::GoesDown
                } else {
                    Next::DidNotGoDown
                }
            }
        }
    }

    /// How far it is, for the status. `blockers` are the users that a costly action waits for.
    #[must_use]
    pub fn status(
        &self,
        plan: &Plan,
        attempts: &Attempts,
        blockers: &[String],
    ) -> MaintenanceStatus {
        let mut left = self.left(plan).peekable();
        let reboots = self.wants_reboot(attempts);
        let completed = left.peek().is_none() && !reboots;
        let first = left.next().map(|action| {
            let (kind, target) = (action.change.kind(), action.change.target());
            match action.message() {
                message if message.is_empty() => format!("{kind} {target} is next"),
                message => format!("{kind} {target}: {message}"),
            }
        });
        let message = match first {
            _ if !completed && !blockers.is_empty() => {
                format!(
                    "waits for who uses RDMA on this node: {}",
                    blockers.join("; ")
                )
            }
            None if reboots => "everything is prepared; the host reboots".to_owned(),
            first => first.unwrap_or_default(),
        };
        MaintenanceStatus {
            granted_plan: self.grant.granted_plan.clone(),
            completed,
            started_at: self.started_at.clone(),
            message: shorten(&message, MESSAGE_LIMIT),
        }
    }
}

#[cfg(test)]
mod tests;
