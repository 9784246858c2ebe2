//! `verify`: every setting that is asked, and how it stands. [`rows`] is pure; [`verify`] reads and prints.
//!
//! What is as asked the planner notes, what is not is in the plan. Modules and keys of openib.conf are read again by
//! themselves: they are asked whatever the machine is.

use std::fmt;

use crds::node::{Cost, Finding};
use k8s_openapi::jiff::Timestamp;

use super::{ConfigArgs, desired, session};
use crate::action::{Action, Blocked, Change, Explain};
use crate::decide::decide;
use crate::execute;
use crate::findings::FindingId;
use crate::gather::gather;
use crate::planner::Plan;
use crate::render;
use crate::settings::Settings;

/// How a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    InEffect,
    /// On disk or in firmware.
    Written,
    /// What was seen instead.
    Differs(String),
    /// Why it could not be read.
    Unknown(String),
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    what: String,
    standing: Standing,
}

impl Row {
    fn of(change: &Change, standing: Standing) -> Self {
        let (kind, target, wanted) = (change.kind(), change.target(), change.desired());
        Self {
            what: format!("{kind} {target} = {wanted}"),
            standing,
        }
    }

    /// Whether a person has something to do.
    fn is_unmet(&self, waits: bool) -> bool {
        match self.standing {
            Standing::Differs(_) => true,
            Standing::Written => waits,
            Standing::InEffect | Standing::Unknown(_) => false,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match &self.standing {
            Standing::InEffect => write!(f, "in effect  {what}"),
            Standing::Written => write!(f, "written    {what}"),
            Standing::Differs(seen) => write!(f, "differs    {what}: {seen}"),
            Standing::Unknown(why) => write!(f, "unknown    {what}: {why}"),
        }
    }
}

/// Reads the host and prints how each setting stands.
pub(super) async fn verify(settings: &Settings, config: &ConfigArgs) -> anyhow::Result<u8> {
    let desired = desired(&config.config)?;
    let now = Timestamp::now();
    let observed = gather(settings, &mut session(&desired), now).await?;
    let decision = decide(&observed, &desired, now);
    let read = |change: &Change| execute::verify(settings, change);
    let asked: Vec<Row> = desired
        .changes()
        .iter()
        .map(|c| asked(c, read(c)))
        .collect();
    let planned = rows(&decision.plan, &decision.findings, read);
    // What is written of openib.conf has its own finding where it is not in effect.
    let unmet =
        asked.iter().any(|row| row.is_unmet(false)) || planned.iter().any(|row| row.is_unmet(true));
    for row in asked.iter().chain(&planned) {
        println!("{row}");
    }
    print!("{}", render::findings(&decision.findings));
    Ok(u8::from(unmet))
}

/// A module or a key of openib.conf, which is a file.
fn asked(change: &Change, read: Result<(), String>) -> Row {
    let standing = match (read, change) {
        (Ok(()), Change::SetOpenibConf { .. }) => Standing::Written,
        (Ok(()), _) => Standing::InEffect,
        (Err(seen), _) => Standing::Differs(seen),
    };
    Row::of(change, standing)
}

/// Everything else: what is met, what is planned, what could not be read, in this order.
fn rows(
    plan: &Plan,
    findings: &[Finding],
    read: impl Fn(&Change) -> Result<(), String>,
) -> Vec<Row> {
    let met = plan.met.iter().map(|c| Row::of(c, Standing::InEffect));
    let actions = plan.actions.iter().filter(|action| !is_asked(action));
    let planned = actions.map(|action| Row::of(&action.change, planned(action, &read)));
    let unread = FindingId::HostUnreadable.row().0;
    let unknown = findings.iter().filter(|finding| finding.id == unread);
    let unknown = unknown.map(|finding| Row {
        what: finding.component.clone(),
        standing: Standing::Unknown(finding.message.clone()),
    });
    met.chain(planned).chain(unknown).collect()
}

fn is_asked(action: &Action) -> bool {
    matches!(
        action.change,
        Change::LoadModule(_) | Change::SetOpenibConf { .. }
    )
}

/// What costs a reboot may be written already; where its reboot has not brought it, that is a difference.
fn planned(action: &Action, read: impl Fn(&Change) -> Result<(), String>) -> Standing {
    let reboots = action.change.cost() == Cost::Reboot;
    let prepared = action.blocked == Some(Blocked::Prepared);
    let given_up = action.blocked == Some(Blocked::NoEffect);
    if prepared || reboots && !given_up && is_written(&action.change, read) {
        return Standing::Written;
    }
    let message = action.message();
    let seen = [action.precondition.as_str(), &message];
    let seen: Vec<&str> = seen.into_iter().filter(|text| !text.is_empty()).collect();
    Standing::Differs(seen.join("; "))
}

/// Whether the setting can be read back; modules that a reboot activates cannot.
fn is_written(change: &Change, read: impl Fn(&Change) -> Result<(), String>) -> bool {
    matches!(change, Change::Tuning(_)) && read(change).is_ok()
}

#[cfg(test)]
mod tests;
