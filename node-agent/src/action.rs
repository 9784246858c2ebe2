//! Actions: what the agent may change on a host, with everything a person needs to judge one. Pure.

mod driver;
mod fabric;
mod tuning;

use std::fmt;

use crds::node::{ActionStatus, Cost};
use serde::{Deserialize, Serialize};

pub use driver::{Activation, DriverChange};
pub use fabric::{EcnSide, FabricChange, Netdev, RdmaPort, Transport, child_name, roce_mode};
pub use tuning::{
    LinkType, NETNS_FILE, Opening, OpeningError, Protocol, TuningChange, Via, redirects,
};

use crate::findings::shorten;
use crate::modules::ModuleName;

/// Attempts that an action has per install hash.
pub const BUDGET: u32 = 3;

/// Longest message of an action in the status.
const MESSAGE_LIMIT: usize = 240;

/// What a change says of itself, to people and to the API.
pub trait Explain {
    /// Kind of the action, as it stands in the API.
    fn kind(&self) -> &'static str;
    /// What it acts on.
    fn target(&self) -> String;
    /// The value that is wanted.
    fn desired(&self) -> String;
    /// What it costs.
    fn cost(&self) -> Cost;
    /// How long what it does lasts by itself.
    fn lasts(&self) -> Lasts;
    /// What will be different.
    fn effect(&self) -> String;
    /// How it is known to be done.
    fn verification(&self) -> String;
}

/// How long a setting lasts by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lasts {
    /// Until the driver is loaded again or the device goes: that it is gone is nobody's doing.
    Device,
    /// Until the next boot.
    Boot,
    /// On disk or in firmware.
    Always,
}

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Changes the RDMA driver.
    Driver(DriverChange),
    /// Changes an RDMA port or a network interface.
    Fabric(FabricChange),
    /// Changes the host's tuning.
    Tuning(TuningChange),
}

impl Explain for Change {
    fn kind(&self) -> &'static str {
        match self {
            Self::LoadModule(_) => "LoadModule",
            Self::UnloadModule(_) => "UnloadModule",
            Self::SetOpenibConf { .. } => "SetOpenibConf",
            Self::Driver(change) => change.kind(),
            Self::Fabric(change) => change.kind(),
            Self::Tuning(change) => change.kind(),
        }
    }

    fn target(&self) -> String {
        match self {
            Self::LoadModule(name) | Self::UnloadModule(name) => name.to_string(),
            Self::SetOpenibConf { key, .. } => key.clone(),
            Self::Driver(change) => change.target(),
            Self::Fabric(change) => change.target(),
            Self::Tuning(change) => change.target(),
        }
    }

    fn desired(&self) -> String {
        match self {
            Self::LoadModule(_) => "loaded".to_owned(),
            Self::UnloadModule(_) => "unloaded".to_owned(),
            Self::SetOpenibConf {
                value: Some(value), ..
            } => value.clone(),
            Self::SetOpenibConf { value: None, .. } => "(not set)".to_owned(),
            Self::Driver(change) => change.desired(),
            Self::Fabric(change) => change.desired(),
            Self::Tuning(change) => change.desired(),
        }
    }

    /// A load breaks nobody, an edit nothing until openibd restarts; an unload may.
    fn cost(&self) -> Cost {
        match self {
            Self::LoadModule(_) | Self::SetOpenibConf { .. } => Cost::None,
            Self::UnloadModule(_) => Cost::Traffic,
            Self::Driver(change) => change.cost(),
            Self::Fabric(change) => change.cost(),
            Self::Tuning(change) => change.cost(),
        }
    }

    fn lasts(&self) -> Lasts {
        match self {
            Self::LoadModule(_) | Self::UnloadModule(_) => Lasts::Boot,
            Self::SetOpenibConf { .. } => Lasts::Always,
            Self::Driver(change) => change.lasts(),
            Self::Fabric(change) => change.lasts(),
            Self::Tuning(change) => change.lasts(),
        }
    }

    fn effect(&self) -> String {
        match self {
            Self::Driver(change) => change.effect(),
            Self::Fabric(change) => change.effect(),
            Self::Tuning(change) => change.effect(),
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

    fn verification(&self) -> String {
        match self {
            Self::Driver(change) => change.verification(),
            Self::Fabric(change) => change.verification(),
            Self::Tuning(change) => change.verification(),
            Self::LoadModule(name) => format!("/proc/modules shows {name} Live"),
            Self::UnloadModule(name) => format!("/proc/modules does not show {name}"),
            Self::SetOpenibConf { key, .. } => {
                format!("the last assignment of {key} in /etc/infiniband/openib.conf")
            }
        }
    }
}

impl Change {
    /// What is changed, whatever the value: the name in the journal.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}/{}", self.kind(), self.target())
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
    /// What brings back what was there before, for the journal; `None` where the change keeps its own account.
    pub undo: Option<Change>,
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
    /// The host has rebooted for it, and it is not in effect.
    NoEffect,
    /// It is prepared, and in effect after the reboot that follows.
    Prepared,
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
            Some(Blocked::NoEffect) => Some(format!(
                "gave up after the reboot; fix the cause, then annotate the GpuRdmaNode with {}",
                crds::names::RESET_ATTEMPTS
            )),
            Some(Blocked::Prepared) => Some(
                "prepared; the host reboots once everything else of the grant is done".to_owned(),
            ),
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

    /// Whether only a reboot is missing.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.blocked == Some(Blocked::Prepared)
    }

    /// Whether only another specification or a person gives it new attempts.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        matches!(self.blocked, Some(Blocked::Exhausted | Blocked::NoEffect))
    }

    /// The action as it stands in the status.
    #[must_use]
    pub fn status(&self) -> ActionStatus {
        ActionStatus {
            kind: self.change.kind().to_owned(),
            target: self.change.target(),
            desired: self.change.desired(),
            cost: self.change.cost(),
            attempts: self.attempts,
            exhausted: self.is_given_up(),
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
