//! One turn of the agent: gather → decide → apply → verify → report. [`crate::run`] and the tests call it.

use crds::GpuRdmaNodeStatus;
use crds::cluster::Mode;
use crds::node::{Cost, Finding};
use k8s_openapi::jiff::Timestamp;

use crate::apply::{Applied, ApplyError, Permit, apply};
use crate::asked::Asked;
use crate::decide::{Decision, decide};
use crate::desired::Desired;
use crate::execute::recover;
use crate::findings::{self, FindingId};
use crate::gather::{GatherError, chain, gather};
use crate::lock::{self, Lock, LockError};
use crate::observed::Observed;
use crate::reader::ReaderError;
use crate::report::{status, with_finding};
use crate::session::Session;
use crate::settings::{GUARD_FILE, Settings};

/// What a turn did and found.
#[derive(Clone, Debug)]
pub struct Turn {
    /// What to publish.
    pub status: GpuRdmaNodeStatus,
    /// What was done to the host.
    pub applied: Applied,
    /// Whether devices wait for a turn that comes soon.
    pub again: bool,
    /// Whether granted actions wait for a turn that comes at once.
    pub more: bool,
    /// Whether nothing is left to do or to wait for: until something changes, another turn would end as this one did.
    pub at_rest: bool,
}

/// Why a turn ended early.
#[derive(Debug, thiserror::Error)]
pub enum CycleError {
    /// The host could not be read at all.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// The turn's work was cut off.
    #[error("a part of the turn ended early")]
    Join(#[from] tokio::task::JoinError),
    /// The plan has no hash.
    #[error("hash the plan")]
    Hash(#[from] serde_json::Error),
}

/// Runs one turn with free and granted actions. On a host that cannot be read in time nothing is done, and the last status says
/// so: what was decided stays in force.
pub async fn cycle(
    settings: &Settings,
    session: &mut Session,
    desired: &Desired,
    before: Option<&GpuRdmaNodeStatus>,
    now: Timestamp,
) -> Result<Turn, CycleError> {
    match (turn(settings, session, desired, before, now).await, before) {
        (Err(CycleError::Gather(GatherError::Reader(error))), Some(before)) => {
            tracing::error!(error = chain(&error), "read the host");
            Ok(unread(before, &error))
        }
        (result, _) => result,
    }
}

fn unread(before: &GpuRdmaNodeStatus, error: &ReaderError) -> Turn {
    let message = format!("{error}; what was decided last stays in force");
    Turn {
        status: with_finding(before, FindingId::HostUnreadable.about("host", message)),
        applied: Applied::default(),
        again: false,
        more: false,
        at_rest: false,
    }
}

/// Whether the next turn would end as this one did, if nothing changed. What could not be read may be readable soon.
fn at_rest(observed: &Observed, decision: &Decision, applied: &Applied) -> bool {
    let unreadable = |finding: &Finding| finding.id == FindingId::HostUnreadable.row().0;
    decision.plan.actions.is_empty()
        && decision.changing.is_empty()
        && decision.memory.maintenance.is_none()
        && observed.kubelet.complete().is_some()
        && applied.written.is_empty()
        && applied.actions.is_empty()
        && !decision.findings.iter().any(unreadable)
}

async fn turn(
    settings: &Settings,
    session: &mut Session,
    desired: &Desired,
    before: Option<&GpuRdmaNodeStatus>,
    now: Timestamp,
) -> Result<Turn, CycleError> {
    let stranded = take_back(settings, now).await?;
    session.asked = Asked::of(desired);
    let (mut observed, mut decision) = look(settings, session, desired, now).await?;
    let lock = lock(settings, desired, &decision, now);
    if matches!(lock, Some(Ok(_))) {
        // What someone else did until now is seen before anything is done.
        (observed, decision) = look(settings, session, desired, now).await?;
    }
    let acts = !matches!(lock, Some(Err(_)));
    let applied = carry_out(settings, &observed, desired, &decision, acts, now).await?;
    if applied.1.is_none() && desired.mode == Mode::Enforce {
        session.wrote(&decision, &applied.0);
    }
    // What was changed is read again: the report tells what is, not what was meant.
    if !applied.0.actions.is_empty() || applied.0.more {
        (observed, decision) = look(settings, session, desired, now).await?;
    } else if applied.1.is_none() && desired.mode == Mode::Enforce {
        decision.memory.clone_from(&applied.0.memory);
    }
    decision.blockers.clone_from(&applied.0.waits);
    if let Some(Err(error)) = lock {
        let finding = FindingId::HostLocked.about("node-agent", chain(&error));
        decision.findings.push(finding);
    }
    decision.findings.extend(stranded);
    if let Some(error) = applied.1 {
        let finding = FindingId::HostUnreadable.about("node-agent", error.chain());
        decision.findings.push(finding);
        if let (ApplyError::Devices(_), Some(file)) = (error, decision.restricted.take()) {
            decision.node_file = file;
        }
    }
    findings::sort(&mut decision.findings);
    let status = status(&observed, desired, &decision, before, now)?;
    Ok(Turn {
        status,
        at_rest: at_rest(&observed, &decision, &applied.0),
        more: applied.0.more,
        applied: applied.0,
        again: !decision.changing.is_empty(),
    })
}

async fn look(
    settings: &Settings,
    session: &mut Session,
    desired: &Desired,
    now: Timestamp,
) -> Result<(Observed, Decision), CycleError> {
    let observed = gather(settings, session, now).await?;
    session.saw(&observed, now);
    let decision = decide(&observed, desired, now);
    Ok((observed, decision))
}

/// The lock, where there is something to run.
fn lock(
    settings: &Settings,
    desired: &Desired,
    decision: &Decision,
    now: Timestamp,
) -> Option<Result<Lock, LockError>> {
    let granted = decision.memory.maintenance.is_some();
    let runs = granted || decision.plan.runnable(Cost::None).next().is_some();
    let acts = runs && desired.mode == Mode::Enforce && !desired.paused;
    acts.then(|| lock::take(&settings.root, "node-agent run", now))
}

/// Undoes what was under way when the agent ended. What cannot be undone is tried again at the next turn; what another
/// process has under way is its own.
async fn take_back(settings: &Settings, now: Timestamp) -> Result<Option<Finding>, CycleError> {
    if settings.root.resolve(GUARD_FILE).is_err() {
        return Ok(None);
    }
    let Ok(_lock) = lock::take(&settings.root, "node-agent run", now) else {
        return Ok(None);
    };
    let settings = settings.clone();
    let done = tokio::task::spawn_blocking(move || recover(&settings)).await?;
    if let Ok(Some(intent)) = &done {
        let what = intent.change.place();
        tracing::warn!(what, "taken back: the agent had ended in between");
    }
    let error = done.err();
    Ok(error.map(|error| {
        let message = format!(
            "a change that was under way could not be taken back: {}",
            chain(&error)
        );
        FindingId::HostUnreadable.about("node-agent", message)
    }))
}

/// A host that cannot be written is reported like everything else.
async fn carry_out(
    settings: &Settings,
    observed: &Observed,
    desired: &Desired,
    decision: &Decision,
    acts: bool,
    now: Timestamp,
) -> Result<(Applied, Option<ApplyError>), CycleError> {
    let permit = Permit {
        allowed: Cost::None,
        acts,
    };
    let (settings, observed) = (settings.clone(), observed.clone());
    let (desired, decision) = (desired.clone(), decision.clone());
    let work = move || apply(&settings, &observed, &desired, &decision, permit, now);
    Ok(match tokio::task::spawn_blocking(work).await? {
        Ok(applied) => (applied, None),
        Err(error) => (Applied::default(), Some(error)),
    })
}
