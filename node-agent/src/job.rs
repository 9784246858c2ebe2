//! Work that must not die with the agent's pod: a package manager's run. One at a time.
//!
//! On a host with systemd it is a transient unit of the host's (`systemd-run(1)`), elsewhere a session of its own
//! (`setsid(1)`). What runs stands in a file before it starts, so that an agent that starts anew finds it again, and
//! knows which packages were there before. How it ended is told by the package database and the log, never by an exit
//! code. Reads and writes; called by [`crate::gather`] and [`crate::execute`].

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::time::Duration;

use host::root::Root;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::action::Change;
use crate::attempts::Attempts;
use crate::packages::arguments::{ENVIRONMENT, Invocation};
use crate::settings::Settings;
use crate::store::{StoreError, read_json, write_json};
use host::program::{CommandError, Outcome, Started, run, start};

/// What runs.
pub const JOB_FILE: &str = "/var/lib/gpurdma/packages.json";
/// What it says.
pub const LOG_FILE: &str = "/var/lib/gpurdma/packages.log";
/// The transient unit.
pub const UNIT: &str = "gpurdma-packages";
/// Where systemd keeps a transient unit while it is loaded; with `--collect` that is while it runs.
const UNIT_FILE: &str = "/run/systemd/transient/gpurdma-packages.service";
/// How long systemd may take to start the unit.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Between two looks at whether the unit is still there.
const LOOK: Duration = Duration::from_millis(50);
/// What is read of the log's end.
const LOG_LIMIT: usize = 64 << 10;

/// Work that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The change that it belongs to, by [`crate::action::Change::attempt_key`].
    pub change: String,
    /// The boot in which it was started.
    pub boot_id: String,
    /// When.
    pub at: Time,
    /// Who runs it.
    pub runner: Runner,
    /// Packages that were installed before; for a restart of openibd, modules to load again after it.
    pub before: BTreeSet<String>,
    /// Whether the change is done when this has ended.
    pub last: bool,
    /// The attempt that it belongs to, counted from one.
    #[serde(default)]
    pub attempt: u32,
}

/// Who runs a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Runner {
    /// Nobody yet.
    Starting,
    /// systemd, as a transient unit.
    Systemd,
    /// A process of ours, told from a later one of the same number by its start time.
    Process {
        /// Process id.
        pid: u32,
        /// Start time in clock ticks since boot (`proc_pid_stat(5)`, field 22).
        started: Option<u64>,
    },
}

/// A job, as the planner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// The job.
    pub job: Job,
    /// Whether it runs.
    pub runs: bool,
}

impl Seen {
    /// Whether it is a run of `change`.
    #[must_use]
    pub fn is_of(&self, change: &Change) -> bool {
        self.job.change == change.attempt_key()
    }

    /// Whether it is one that nobody has judged.
    #[must_use]
    pub fn is_open(&self, change: &Change, attempts: &Attempts) -> bool {
        self.is_of(change) && attempts.may_be_open(change)
    }
}

/// The job that was started last and not settled; `None` where there is none.
pub fn seen(root: &Root, boot_id: &str) -> Result<Option<Seen>, StoreError> {
    let job: Option<Job> = read_json(root, JOB_FILE)?;
    Ok(job.map(|job| Seen {
        runs: job.boot_id == boot_id && runs(root, &job.runner),
        job,
    }))
}

fn runs(root: &Root, runner: &Runner) -> bool {
    match runner {
        Runner::Starting | Runner::Systemd => root.resolve(UNIT_FILE).is_ok(),
        Runner::Process { pid, started } => started.is_some() && start_time(root, *pid) == *started,
    }
}

/// Field 22 of `/proc/PID/stat`; the name in field 2 may hold spaces and brackets.
fn start_time(root: &Root, pid: u32) -> Option<u64> {
    let text = root.text(&format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// Why a job did not start.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A program could not be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// systemd refused the unit.
    #[error("systemd-run --unit={UNIT}: {status}: {stderr}")]
    Refused {
        /// Exit status.
        status: String,
        /// What it said.
        stderr: String,
    },
    /// systemd did not answer.
    #[error("systemd-run --unit={UNIT}: no answer within {seconds} s")]
    Silent {
        /// How long was waited.
        seconds: u64,
    },
    /// The log could not be made.
    #[error("make {LOG_FILE}")]
    Log(#[source] std::io::Error),
}

/// Starts `what` for `job` and waits a little; `true` where it has ended.
pub fn start_and_wait(
    settings: &Settings,
    mut job: Job,
    what: &Invocation,
    patience: Duration,
) -> Result<bool, JobError> {
    let root = &settings.root;
    root.remove(LOG_FILE).map_err(StoreError::from)?;
    write_json(root, JOB_FILE, &job)?;
    if root.resolve("/run/systemd/system").is_ok() {
        job.runner = Runner::Systemd;
        write_json(root, JOB_FILE, &job)?;
        begun(root, start_unit(settings, what))?;
        return Ok(unit_ends_within(root, patience));
    }
    let started = begun(root, start_session(settings, what))?;
    job.runner = Runner::Process {
        pid: started.pid,
        started: start_time(root, started.pid),
    };
    write_json(root, JOB_FILE, &job)?;
    Ok(started.ends_within(patience))
}

/// Forgets a job that surely was not started.
fn begun<T>(root: &Root, result: Result<T, JobError>) -> Result<T, JobError> {
    if matches!(&result, Err(error) if !matches!(error, JobError::Silent { .. })) {
        settle(root)?;
    }
    result
}

/// Forgets a job whose outcome is known.
pub fn settle(root: &Root) -> Result<(), StoreError> {
    Ok(root.remove(JOB_FILE)?)
}

/// The end of what the last job said.
#[must_use]
pub fn log(root: &Root) -> String {
    let bytes = root.bytes(LOG_FILE).unwrap_or_default();
    let from = bytes.len().saturating_sub(LOG_LIMIT);
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned()
}

/// Arguments of `chroot` that make systemd run `what`. Pure.
#[must_use]
pub fn unit_arguments(root: &Root, what: &Invocation) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![root.path().into(), "systemd-run".into()];
    let options = [
        format!("--unit={UNIT}"),
        "--collect".to_owned(),
        "--quiet".to_owned(),
        "--no-ask-password".to_owned(),
        "--description=Packages of the RDMA driver, by gpu-rdma-operator".to_owned(),
        format!("--property=StandardOutput=file:{LOG_FILE}"),
        format!("--property=StandardError=file:{LOG_FILE}"),
        // Builds of modules for a kernel take long, and a package manager that is killed leaves a broken database.
        "--property=TimeoutStopSec=30min".to_owned(),
        "--property=KillMode=mixed".to_owned(),
    ];
    arguments.extend(options.map(OsString::from));
    let set = |(name, value): &(&str, &str)| OsString::from(format!("--setenv={name}={value}"));
    arguments.extend(ENVIRONMENT.iter().map(set));
    arguments.push("--".into());
    arguments.push(what.program.into());
    arguments.extend(what.arguments.iter().map(OsString::from));
    arguments
}

fn start_unit(settings: &Settings, what: &Invocation) -> Result<(), JobError> {
    let arguments = unit_arguments(&settings.root, what);
    let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    match run(settings.chroot.as_os_str(), &arguments, START_DEADLINE)? {
        Outcome::Succeeded => Ok(()),
        Outcome::Failed { status, stderr } => Err(JobError::Refused { status, stderr }),
        Outcome::Unknown { waited } => Err(JobError::Silent {
            seconds: waited.as_secs(),
        }),
    }
}

fn unit_ends_within(root: &Root, patience: Duration) -> bool {
    let mut waited = Duration::ZERO;
    while root.resolve(UNIT_FILE).is_ok() {
        if waited >= patience {
            return false;
        }
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
    true
}

fn start_session(settings: &Settings, what: &Invocation) -> Result<Started, JobError> {
    let root = &settings.root;
    let real = root.resolve("/var/lib/gpurdma").map_err(StoreError::from)?;
    let log = root.join(&real).join("packages.log");
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .map_err(JobError::Log)?;
    let mut arguments: Vec<&OsStr> = vec![root.path().as_os_str(), OsStr::new("setsid")];
    arguments.push(OsStr::new(what.program));
    arguments.extend(what.arguments.iter().map(OsStr::new));
    Ok(start(
        settings.chroot.as_os_str(),
        &arguments,
        ENVIRONMENT,
        log,
    )?)
}

#[cfg(test)]
mod tests;
