//! Actions: what the agent may change on a host, with everything a person needs to judge one. Pure.

use std::fmt;

use crds::node::{ActionStatus, Cost};
use serde::Serialize;

use crate::findings::shorten;
use crate::modules::ModuleName;

/// Attempts that an action has per install hash.
pub const BUDGET: u32 = 3;

/// Longest message of an action in the status.
const MESSAGE_LIMIT: usize = 240;

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Loads a kernel module.
    LoadModule(ModuleName),
    /// Unloads a kernel module that the agent loaded.
    UnloadModule(ModuleName),
    /// Sets a key of `/etc/infiniband/openib.conf`; `None` takes the key out.
    SetOpenibConf {
        /// The key.
        key: String,
        /// The value.
        value: Option<String>,
    },
}

impl Change {
    /// Kind of the action, as it stands in the API.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::LoadModule(_) => "LoadModule",
            Self::UnloadModule(_) => "UnloadModule",
            Self::SetOpenibConf { .. } => "SetOpenibConf",
        }
    }

    /// What it acts on.
    #[must_use]
    pub fn target(&self) -> &str {
        match self {
            Self::LoadModule(name) | Self::UnloadModule(name) => name.as_str(),
            Self::SetOpenibConf { key, .. } => key,
        }
    }

    /// The value that is wanted.
    #[must_use]
    pub fn desired(&self) -> &str {
        match self {
            Self::LoadModule(_) => "loaded",
            Self::UnloadModule(_) => "unloaded",
            Self::SetOpenibConf {
                value: Some(value), ..
            } => value,
            Self::SetOpenibConf { value: None, .. } => "(not set)",
        }
    }

    /// What it costs. A load breaks nobody, an edit nothing until openibd restarts; an unload may.
    #[must_use]
    pub fn cost(&self) -> Cost {
        match self {
            Self::LoadModule(_) | Self::SetOpenibConf { .. } => Cost::None,
            Self::UnloadModule(_) => Cost::Traffic,
        }
    }

    /// What will be different.
    #[must_use]
    pub fn effect(&self) -> String {
        match self {
            Self::LoadModule(name) => {
                format!("{name} and what it depends on are loaded, until the next boot")
            }
            Self::UnloadModule(name) => format!("{name}, loaded by this agent, is unloaded"),
            Self::SetOpenibConf {
                key,
                value: Some(value),
            } => {
                format!("{key}={value} is written; in effect after openibd restarts")
            }
            Self::SetOpenibConf { key, value: None } => {
                format!("{key} is taken out; in effect after openibd restarts")
            }
        }
    }

    /// How it is known to be done.
    #[must_use]
    pub fn verification(&self) -> String {
        match self {
            Self::LoadModule(name) => format!("/proc/modules shows {name} Live"),
            Self::UnloadModule(name) => format!("/proc/modules does not show {name}"),
            Self::SetOpenibConf { key, .. } => {
                format!("the last assignment of {key} in /etc/infiniband/openib.conf")
            }
        }
    }

    /// The name under which attempts are counted.
    #[must_use]
    pub fn attempt_key(&self) -> String {
        format!("{}/{}/{}", self.kind(), self.target(), self.desired())
    }
}

/// A change that is planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// What is changed.
    pub change: Change,
    /// What was seen, and must still be so when the action runs.
    pub precondition: String,
    /// Attempts made under this install hash.
    pub attempts: u32,
    /// Attempts that it has.
    pub budget: u32,
    /// Why it does not run now; `None`: it may.
    pub blocked: Option<Blocked>,
    /// What the last attempt said, where one failed.
    pub last_error: Option<String>,
}

/// Why an action does not run now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Blocked {
    /// Its attempts are used up.
    Exhausted,
    /// It waits for what the text names.
    Waits(String),
}

impl Action {
    /// What it waits for or why it failed; empty otherwise.
    #[must_use]
    pub fn message(&self) -> String {
        let blocked = match &self.blocked {
            Some(Blocked::Exhausted) => Some(format!(
                "gave up after {} attempts; fix the cause, then annotate the GpuRdmaNode with {}",
                self.attempts,
                crds::names::RESET_ATTEMPTS
            )),
            Some(Blocked::Waits(what)) => Some(format!("waits: {what}")),
            None => None,
        };
        let failed = self
            .last_error
            .as_ref()
            .map(|error| format!("last attempt: {error}"));
        blocked
            .into_iter()
            .chain(failed)
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// The action as it stands in the status.
    #[must_use]
    pub fn status(&self) -> ActionStatus {
        ActionStatus {
            kind: self.change.kind().to_owned(),
            target: self.change.target().to_owned(),
            desired: self.change.desired().to_owned(),
            cost: self.change.cost(),
            attempts: self.attempts,
            message: shorten(&self.message(), MESSAGE_LIMIT),
        }
    }
}

/// One action as a person reads it in a plan.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            change,
            precondition,
            attempts,
            budget,
            ..
        } = self;
        let (kind, target, desired) = (change.kind(), change.target(), change.desired());
        writeln!(f, "{kind} {target} -> {desired}")?;
        writeln!(f, "  because  {precondition}")?;
        writeln!(f, "  effect   {}", change.effect())?;
        writeln!(f, "  verified {}", change.verification())?;
        let next = (attempts + 1).min(*budget);
        writeln!(
            f,
            "  cost     {:?}, attempt {next} of {budget}",
            change.cost()
        )?;
        match self.message() {
            message if message.is_empty() => Ok(()),
            message => writeln!(f, "  state    {message}"),
        }
    }
}
