//! The way back: actions that undo what the journal says the agent changed, and nothing else.

use k8s_openapi::jiff::Timestamp;
use topology::fact::Fact;

use super::{Memory, Plan, under_way};
use crate::action::{Change, Explain};
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::job::Seen;
use crate::journal::Changed;
use crate::openib_conf;

/// What undoes everything in the journal that still is as the agent left it.
#[must_use]
pub fn restore(state: &HostState, memory: &Memory, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    changed(&mut plan, state, memory, now);
    keys(&mut plan, state, memory, now);
    modules(&mut plan, state, memory, now);
    plan
}

/// The last change is undone first. What does not outlast its boot or device needs no undoing once that is over; what had its
/// reboot, and is as it was, neither.
fn changed(plan: &mut Plan, state: &HostState, memory: &Memory, now: Timestamp) {
    let mut entries: Vec<_> = memory.journal.changed.values().collect();
    entries.sort_by(|a, b| (b.at.0, &b.done).cmp(&(a.at.0, &a.done)));
    entries.retain(|entry| entry.may_be_there(&state.boot_id));
    for entry in entries {
        undo(plan, state, memory, now, entry);
    }
}

/// Whether the reboot for a way back has brought it; `None` where there was none. What is not there any more needs none.
fn rebooted(state: &HostState, memory: &Memory, undo: &Change) -> Option<Fact<bool>> {
    if !memory.attempts.had_reboot(undo) {
        return None;
    }
    Some(match undo {
        Change::Tuning(change) => super::tuning::in_effect(state, change),
        // Nothing else costs a reboot on its way back.
        _ => Fact::Absent,
    })
}

/// One entry. A package manager that takes back what it installed is waited for, as one that installs is.
fn undo(plan: &mut Plan, state: &HostState, memory: &Memory, now: Timestamp, entry: &Changed) {
    let change = entry.undo.clone();
    let (set, at) = (entry.done.desired(), entry.at.0);
    let seen = format!("{set} was set by this agent at {at}");
    let action = match (
        rebooted(state, memory, &change),
        under_way(state, memory, &change),
    ) {
        (Some(Fact::Known(true) | Fact::Absent), _) => {
            plan.met.insert(change);
            return;
        }
        // Neither done nor without effect: nobody knows.
        (Some(Fact::Unreadable(why)), _) => {
            plan.find(FindingId::HostUnreadable, change.target(), why);
            let waits = "the host has rebooted for it; whether it is in effect cannot be read";
            plan.follow(change, seen, memory, Some(waits.to_owned()))
        }
        (_, Some(Seen { job, runs })) => {
            let waits = || format!("the package manager runs since {}", job.at.0);
            plan.follow(change, seen, memory, runs.then(waits))
        }
        (_, None) => plan.act(change, seen, memory, now),
    };
    action.undo = Some(entry.undo.clone());
}

/// A module that we loaded in another boot is no longer loaded by us.
fn modules(plan: &mut Plan, state: &HostState, memory: &Memory, now: Timestamp) {
    let ours = memory.journal.modules.iter().filter(|(name, entry)| {
        entry.boot_id == state.boot_id && state.has_module(name) == Some(true)
    });
    let ours: Vec<_> = ours
        .map(|(name, entry)| (name.clone(), entry.at.0))
        .collect();
    super::modules::unload(plan, &ours, state, memory, now);
}

fn keys(plan: &mut Plan, state: &HostState, memory: &Memory, now: Timestamp) {
    for (key, set) in &memory.journal.openib_conf {
        let text = match &state.facts.openib_conf.fact {
            Fact::Known(text) => text,
            Fact::Absent => continue,
            Fact::Unreadable(why) => {
                plan.find(FindingId::HostUnreadable, key, why);
                continue;
            }
        };
        match openib_conf::effective(text, key) {
            Ok(Some((last, _))) if last.value.as_ref() == Some(&set.after) => {
                let precondition = format!("{key}={} was written by this agent", set.after);
                let change = Change::SetOpenibConf {
                    key: key.clone(),
                    value: set.before.clone(),
                };
                plan.act(change, precondition, memory, now);
            }
            Ok(_) => {
                let message = format!("{key} is no longer {}; it is left as it is", set.after);
                plan.find(FindingId::ForeignOwner, key, message);
            }
            Err(error) => plan.find(FindingId::OpenibConfNotPlain, key, error.to_string()),
        }
    }
}
