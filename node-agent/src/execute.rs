//! Runs one action and proves its effect. The result of a command is never the proof: `/proc/modules` and the file are
//! read again. Called by [`crate::apply`].

mod driver;
mod fabric;
mod tuning;

pub use driver::PackageError;

use crds::node::Cost;
use host::facts::kernel;
use host::root::Root;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use topology::fact::Fact;

use crate::action::{Action, Change, Explain};
use crate::gather::chain;
use crate::guard::{self, Intent, Servers};
use crate::host_state::HostState;
use crate::job::JobError;
use crate::journal::SetKey;
use crate::modules::{ModuleName, ModuleState, from_facts};
use crate::openib_conf::{self, OpenibConfError};
use crate::planner::Memory;
use crate::settings::{ATTEMPTS_FILE, JOURNAL_FILE, OPENIB_CONF, Settings};
use crate::store::{StoreError, read_text, replace_host_file, write_json};
use crate::tools::ToolError;
use host::program::{CommandError, Outcome};

/// Why an action did not have its effect.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A program could not be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A program failed.
    #[error("{what}: {status}: {stderr}")]
    Failed {
        /// What was run.
        what: String,
        /// Exit status.
        status: String,
        /// What it said.
        stderr: String,
    },
    /// A program did not return, and the effect is not there.
    #[error("{what}: no answer within {seconds} s; whether it takes effect is unknown")]
    Unknown {
        /// What was run.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The program succeeded, and its effect is not there.
    #[error("{what} reported success, but {seen}")]
    NotVerified {
        /// What was run.
        what: String,
        /// What was seen.
        seen: String,
    },
    /// The API server does not answer, before anything was changed.
    #[error("not begun: {0}")]
    Unreachable(String),
    /// The change cut the node off and was taken back.
    #[error("{what}: afterwards {seen}; it was taken back")]
    RolledBack {
        /// What was done.
        what: String,
        /// What was seen afterwards.
        seen: String,
    },
    /// The change cut the node off and could not be taken back.
    #[error("{what}: afterwards {seen}; taking it back failed: {undo}")]
    Stranded {
        /// What was done.
        what: String,
        /// What was seen afterwards.
        seen: String,
        /// Why it is still done.
        undo: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A tool could not be asked or failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// What must be so for the action is not so.
    #[error("{what} is left as it is: {why}")]
    Refused {
        /// What would be changed.
        what: String,
        /// Why it is not.
        why: String,
    },
    /// openib.conf is not edited.
    #[error(transparent)]
    OpenibConf(#[from] OpenibConfError),
    /// What takes long did not start.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A package manager or openibd did not do what was asked.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It runs, and outlives this turn.
    #[error("{what}: runs since {since}; a later turn sees how it ends")]
    Underway {
        /// What runs.
        what: String,
        /// Since when.
        since: Timestamp,
    },
}

/// Runs `action` with its attempt counted and its old value noted; both are on disk before anything happens.
pub fn execute(
    settings: &Settings,
    state: &HostState,
    action: &Action,
    memory: &mut Memory,
    now: Timestamp,
) -> Result<(), ExecuteError> {
    let (root, change) = (&settings.root, &action.change);
    // A server that is away before is nobody's failed attempt.
    let line = safety_line(settings, state, change)?;
    if driver::is_under_way(settings, state, change, memory)? {
        memory.attempts.go_on(change, now);
    } else {
        memory.attempts.begin(change, now);
    }
    write_json(root, ATTEMPTS_FILE, &memory.attempts)?;
    // The way back is forgotten once it is done, else a crash in between would lose it.
    let back = action.undo.as_ref() == Some(change);
    if let Some(undo) = action.undo.as_ref().filter(|_| !back) {
        memory
            .journal
            .changing(change, undo, &state.boot_id, Time(now));
        write_json(root, JOURNAL_FILE, &memory.journal)?;
    }
    let result = match (&line, &action.undo) {
        (Some(servers), Some(undo)) => {
            let intent = Intent {
                change: change.clone(),
                undo: undo.clone(),
                boot_id: state.boot_id.clone(),
                at: Time(now),
            };
            on_line(settings, state, &intent, servers, memory, now)
        }
        _ => perform(settings, state, change, memory, now),
    };
    let error = result.as_ref().err().map(|error| chain(error));
    let reboots = change.cost() == Cost::Reboot;
    match (&error, reboots) {
        // It stays counted, and open.
        _ if matches!(result, Err(ExecuteError::Underway { .. })) => {}
        (None, true) => memory.attempts.prepared(change, &state.boot_id),
        (None, false) if back => {
            memory
                .journal
                .changing(change, change, &state.boot_id, Time(now));
            memory.attempts.end(change, None);
        }
        (error, _) => memory.attempts.end(change, error.as_deref()),
    }
    write_json(root, ATTEMPTS_FILE, &memory.attempts)?;
    write_json(root, JOURNAL_FILE, &memory.journal)?;
    result
}

/// The servers that must stay reachable; `None` where the change cuts nobody off, or nobody is there.
fn safety_line(
    settings: &Settings,
    state: &HostState,
    change: &Change,
) -> Result<Option<Servers>, ExecuteError> {
    if !guard::is_needed(change) {
        return Ok(None);
    }
    let kubelet = &state.facts.network.depends.api_servers.fact;
    let servers = guard::servers(kubelet, settings.api_server.as_ref());
    let servers = servers.map_err(ExecuteError::Unreachable)?;
    if let Some(servers) = &servers {
        servers.reach().map_err(ExecuteError::Unreachable)?;
    }
    Ok(servers)
}

fn on_line(
    settings: &Settings,
    state: &HostState,
    intent: &Intent,
    servers: &Servers,
    memory: &mut Memory,
    now: Timestamp,
) -> Result<(), ExecuteError> {
    let mut act = |change: &Change| perform(settings, state, change, memory, now);
    let reach = || servers.reach();
    let result = guard::guarded(&settings.root, intent, guard::TIMING, &reach, &mut act);
    if matches!(result, Err(ExecuteError::RolledBack { .. })) {
        guard::undone(&mut memory.journal, intent);
    }
    result
}

/// Takes back a change that an earlier process began and did not see through, before anything is read or decided.
pub fn recover(settings: &Settings) -> Result<Option<Intent>, ExecuteError> {
    // Without a boot id nothing is done at all; the turn says so.
    let Fact::Known(boot_id) = kernel::boot_id(&settings.root).fact else {
        return Ok(None);
    };
    let mut act = |change: &Change| match change {
        Change::Fabric(change) => fabric::perform(settings, change),
        other => Err(ExecuteError::Refused {
            what: other.place(),
            why: "it is no change that is guarded".to_owned(),
        }),
    };
    guard::recover(&settings.root, &boot_id, &mut act)
}

fn perform(
    settings: &Settings,
    state: &HostState,
    change: &Change,
    memory: &mut Memory,
    now: Timestamp,
) -> Result<(), ExecuteError> {
    match change {
        Change::LoadModule(name) => {
            let outcome = settings.module_tool().load(name)?;
            judge(
                &format!("modprobe {name}"),
                outcome,
                verify(settings, change),
            )?;
            memory
                .journal
                .module_loaded(name, &state.boot_id, Time(now));
        }
        Change::UnloadModule(name) => {
            let outcome = settings.module_tool().unload(name)?;
            judge(&format!("rmmod {name}"), outcome, verify(settings, change))?;
            memory.journal.modules.remove(name);
        }
        Change::SetOpenibConf {
            key,
            value: Some(value),
        } => {
            set_key(settings, state, key, value, memory, now)?;
            verified("the edit", verify(settings, change))?;
        }
        Change::SetOpenibConf { key, value: None } => {
            let text = read_text(&settings.root, OPENIB_CONF)?.unwrap_or_default();
            replace_host_file(
                &settings.root,
                OPENIB_CONF,
                &openib_conf::unset(&text, key)?,
            )?;
            memory.journal.openib_conf.remove(key);
        }
        Change::Driver(change) => driver::perform(settings, state, change, memory, now)?,
        Change::Fabric(change) => fabric::perform(settings, change)?,
        Change::Tuning(change) => tuning::perform(settings, state, change)?,
    }
    if let Change::Driver(_) | Change::Fabric(_) | Change::Tuning(_) = change {
        verified(&change.place(), verify(settings, change))?;
    }
    Ok(())
}

/// The effect counts, whatever the program said.
fn judge(what: &str, outcome: Outcome, seen: Result<(), String>) -> Result<(), ExecuteError> {
    let what = what.to_owned();
    match (outcome, seen) {
        (_, Ok(())) => Ok(()),
        (Outcome::Succeeded, Err(seen)) => Err(ExecuteError::NotVerified { what, seen }),
        (Outcome::Failed { status, stderr }, Err(_)) => Err(ExecuteError::Failed {
            what,
            status,
            stderr,
        }),
        (Outcome::Unknown { waited }, Err(_)) => Err(ExecuteError::Unknown {
            what,
            seconds: waited.as_secs(),
        }),
    }
}

fn verified(what: &str, seen: Result<(), String>) -> Result<(), ExecuteError> {
    seen.map_err(|seen| ExecuteError::NotVerified {
        what: what.to_owned(),
        seen,
    })
}

fn set_key(
    settings: &Settings,
    state: &HostState,
    key: &str,
    value: &str,
    memory: &mut Memory,
    now: Timestamp,
) -> Result<(), ExecuteError> {
    let root = &settings.root;
    let text = read_text(root, OPENIB_CONF)?.unwrap_or_default();
    let before = openib_conf::effective(&text, key)?.and_then(|(last, _)| last.value);
    let edited = openib_conf::set(&text, key, value)?;
    let set = SetKey {
        before,
        after: value.to_owned(),
        boot_id: state.boot_id.clone(),
        at: Time(now),
        openibd: state.facts.openibd.invocation.known().cloned(),
        asserted: true,
    };
    memory.journal.key_set(key, set);
    write_json(root, JOURNAL_FILE, &memory.journal)?;
    replace_host_file(root, OPENIB_CONF, &edited)?;
    memory.journal.forget_restored(key);
    Ok(())
}

/// Reads again whether `change` has its effect; the error says what is there instead.
pub fn verify(settings: &Settings, change: &Change) -> Result<(), String> {
    let root = &settings.root;
    match change {
        Change::Driver(change) => driver::verify(settings, change),
        Change::Fabric(change) => fabric::verify(settings, change),
        Change::Tuning(change) => tuning::verify(settings, change),
        Change::LoadModule(name) => match module(root, name)? {
            Some(ModuleState::Live) => Ok(()),
            Some(other) => Err(format!("{name} is {other:?}")),
            None => Err(format!("/proc/modules does not show {name}")),
        },
        Change::UnloadModule(name) => match module(root, name)? {
            None => Ok(()),
            Some(state) => Err(format!("{name} is still {state:?}")),
        },
        Change::SetOpenibConf { key, value } => {
            let text = read_text(root, OPENIB_CONF).map_err(|error| error.chain())?;
            let found = openib_conf::effective(&text.unwrap_or_default(), key);
            let found = found
                .map_err(|error| error.to_string())?
                .and_then(|(last, _)| last.value);
            if &found == value {
                return Ok(());
            }
            Err(format!(
                "{key} is {}",
                found.unwrap_or_else(|| "not set".to_owned())
            ))
        }
    }
}

fn module(root: &Root, name: &ModuleName) -> Result<Option<ModuleState>, String> {
    match from_facts(kernel::modules(root).fact) {
        Fact::Known(modules) => Ok(modules.get(name).copied()),
        Fact::Absent => Err("/proc/modules is absent".to_owned()),
        Fact::Unreadable(why) => Err(why),
    }
}
