//! Carries out and verifies changes of the RDMA driver and of what makes GPU memory reachable for it. Called by [`super`]
//! only. Writes repository files, starts package managers and openibd.

mod openibd;
mod packages;
mod repositories;

use std::collections::BTreeSet;
use std::time::Duration;

use host::facts::install::install;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use topology::fact::Fact;

use self::openibd::in_effect;
use self::repositories::{describe, described, forget};
use super::ExecuteError;
use crate::action::{Activation, Change, DriverChange, Explain};
use crate::host_state::HostState;
use crate::job::{self, Job, Runner};
use crate::packages::arguments::{ENVIRONMENT, Invocation};
use crate::packages::failure::{Failure, classify};
use crate::packages::{Installed, database, unmet};
use crate::planner::Memory;
use crate::settings::Settings;
use host::program::{self, Outcome};

/// How long a turn waits for what may take minutes.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a package manager may take to look at its repositories.
const REFRESH_DEADLINE: Duration = Duration::from_mins(2);

/// Why a package manager did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// It failed.
    #[error("{what}: {failure}")]
    Failed {
        /// What was asked.
        what: String,
        /// Why.
        failure: Failure,
    },
    /// It said nothing that explains what is there.
    #[error("{what}: the package manager ended, but {seen}; see {log} on the node", log = job::LOG_FILE)]
    Unmet {
        /// What was asked.
        what: String,
        /// What is there instead.
        seen: String,
    },
    /// It does not answer.
    #[error("{what}: no answer within {seconds} s")]
    Silent {
        /// What was asked.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
    /// It was ended from outside, as often as there are attempts.
    #[error("{what}: the package manager was cut off {times} times; find out what ends it (the kernel's log, who stops units), and see {log} on the node", log = job::LOG_FILE)]
    CutOff {
        /// What was asked.
        what: String,
        /// How often.
        times: u32,
    },
    /// A module that was unloaded is there again.
    #[error(
        "{name} was unloaded and is loaded again before openibd ran: find out who loads it; the old driver still runs"
    )]
    DependentReloaded {
        /// The module.
        name: String,
    },
}

/// Whether a run of `change` was started that nobody has judged.
pub(super) fn is_under_way(
    settings: &Settings,
    state: &HostState,
    change: &Change,
    memory: &Memory,
) -> Result<bool, ExecuteError> {
    if !matches!(change, Change::Driver(_)) {
        return Ok(false);
    }
    let seen = job::seen(&settings.root, &state.boot_id)?;
    Ok(seen.is_some_and(|seen| seen.is_open(change, &memory.attempts)))
}

/// Makes the change; the caller verifies it.
pub(super) fn perform(
    settings: &Settings,
    state: &HostState,
    change: &DriverChange,
    memory: &mut Memory,
    now: Timestamp,
) -> Result<(), ExecuteError> {
    match change {
        DriverChange::SetRepository {
            manager,
            repository,
            there: true,
        } => describe(settings, *manager, repository),
        DriverChange::SetRepository {
            manager,
            repository,
            there: false,
        } => Ok(forget(&settings.root, *manager, repository)?),
        DriverChange::SetPackages { manager, wishes } => Run {
            settings,
            state,
            change,
            now,
        }
        .packages(*manager, wishes, memory),
        DriverChange::ActivateDriver {
            way: Activation::Openibd,
            ..
        } => Run {
            settings,
            state,
            change,
            now,
        }
        .openibd(memory),
        // Whoever reboots the node does so once everything else is done.
        DriverChange::ActivateDriver {
            way: Activation::Reboot,
            ..
        } => Ok(()),
    }
}

/// Reads again whether the change has its effect; the error says what is there instead.
pub(super) fn verify(settings: &Settings, change: &DriverChange) -> Result<(), String> {
    let root = &settings.root;
    match change {
        DriverChange::SetRepository {
            manager,
            repository,
            there,
        } => described(root, *manager, repository, *there),
        DriverChange::SetPackages { wishes, .. } => {
            let missing = unmet(wishes, &installed(settings)?);
            missing.map_or(Ok(()), Err)
        }
        DriverChange::ActivateDriver {
            way: Activation::Openibd,
            ..
        } => in_effect(root),
        DriverChange::ActivateDriver {
            way: Activation::Reboot,
            ..
        } => Ok(()),
    }
}

fn installed(settings: &Settings) -> Result<Installed, String> {
    let packages = install(&settings.root).packages;
    match database::installed(settings, &packages) {
        Fact::Known(installed) => Ok(installed),
        Fact::Absent => Err(format!("{} is not there", packages.installed.source)),
        Fact::Unreadable(why) => Err(why),
    }
}

/// Runs a program of the host and waits for it.
fn ask(settings: &Settings, what: &Invocation) -> Result<(), ExecuteError> {
    let shown = format!("{} {}", what.program, what.arguments.join(" "));
    let mut arguments = vec![settings.root.path().as_os_str(), what.program.as_ref()];
    arguments.extend(what.arguments.iter().map(AsRef::<std::ffi::OsStr>::as_ref));
    let (outcome, said) = program::ask(
        settings.chroot.as_os_str(),
        &arguments,
        ENVIRONMENT,
        REFRESH_DEADLINE,
    )?;
    match outcome {
        Outcome::Succeeded => Ok(()),
        Outcome::Failed { stderr, .. } => Err(PackageError::Failed {
            what: short(&shown),
            // stderr comes as one line; what stands in stdout explains it.
            failure: classify(&format!("{said}\n{}", stderr.replace(" E: ", "\nE: "))),
        }
        .into()),
        Outcome::Unknown { waited } => Err(PackageError::Silent {
            what: short(&shown),
            seconds: waited.as_secs(),
        }
        .into()),
    }
}

fn short(text: &str) -> String {
    let words = text
        .split_whitespace()
        .filter(|word| !word.starts_with("--"));
    crate::findings::shorten(&words.collect::<Vec<_>>().join(" "), 80)
}

/// One run of something that takes long.
struct Run<'a> {
    settings: &'a Settings,
    state: &'a HostState,
    change: &'a DriverChange,
    now: Timestamp,
}

impl Run<'_> {
    fn key(&self) -> String {
        Change::Driver(self.change.clone()).attempt_key()
    }

    fn what(&self) -> String {
        format!("{} {}", self.change.kind(), self.change.desired())
    }

    fn job(&self, before: BTreeSet<String>, last: bool, memory: &Memory) -> Job {
        let change = Change::Driver(self.change.clone());
        Job {
            attempt: memory.attempts.of(&change).0,
            change: self.key(),
            boot_id: self.state.boot_id.clone(),
            at: Time(self.now),
            runner: Runner::Starting,
            before,
            last,
        }
    }

    fn underway(&self, job: &Job) -> ExecuteError {
        ExecuteError::Underway {
            what: self.what(),
            since: job.at.0,
        }
    }

    fn unmet(&self, seen: String) -> ExecuteError {
        PackageError::Unmet {
            what: self.what(),
            seen,
        }
        .into()
    }
}

#[cfg(test)]
mod tests;
