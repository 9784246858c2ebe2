//! Asks the field's tools, each with a deadline and without a shell. The host's own tool comes first, by `chroot`; the agent's
//! image has those that a host may lack. The latter tell of the machine that runs here, so they are asked only where the
//! root is that machine's. A captured tree has recorded answers instead.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use host::facts::kernel;
use host::facts::tuning::users::{self, RdmaUsers};
use host::facts::tuning::{self, Scope, ToolAnswers, Tuning};
use host::root::Root;
use topology::fact::Fact;
use topology::machine::Machine;
use topology::pci::PciAddress;

use crate::asked::Asked;
use crate::gather::chain;
use crate::settings::Settings;
use host::program::{self, CommandError, Outcome};

/// How long a question may take.
const QUESTION: Duration = Duration::from_secs(10);
/// How long firmware may take to answer: it has been seen to need seconds.
const FIRMWARE: Duration = Duration::from_secs(30);
/// Where a host has its tools.
const PLACES: &[&str] = &[
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];
/// Settings of firmware that are read.
pub const FIRMWARE_SETTINGS: &[&str] = &["LINK_TYPE_P1", "LINK_TYPE_P2", "ATS_ENABLED"];

/// Why a tool has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// Neither the host nor, where that would tell of this machine, the agent has it.
    #[error("{tool} is not installed on the host; install it, or use the agent's image")]
    NotInstalled {
        /// The tool.
        tool: &'static str,
    },
    /// It could not be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// It failed.
    #[error("{tool}: {status}: {stderr}")]
    Failed {
        /// The tool.
        tool: &'static str,
        /// Exit status.
        status: String,
        /// What it said.
        stderr: String,
    },
    /// It did not end in time.
    #[error("{tool}: no answer within {seconds} s")]
    NoAnswer {
        /// The tool.
        tool: &'static str,
        /// How long was waited.
        seconds: u64,
    },
}

/// The tools of one host.
#[derive(Clone, Debug)]
pub struct Tools {
    root: Root,
    chroot: PathBuf,
    is_live: bool,
}

impl Tools {
    /// The tools that tell of the machine below the root.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let here = kernel::boot_id(&Root::new("/")).fact;
        let there = kernel::boot_id(&settings.root).fact;
        Self {
            root: settings.root.clone(),
            chroot: settings.chroot.clone(),
            is_live: here.known().is_some() && here == there,
        }
    }

    /// Runs a tool and returns its standard output.
    pub fn ask(
        &self,
        tool: &'static str,
        arguments: &[&str],
        deadline: Duration,
    ) -> Result<String, ToolError> {
        let (program, leading) = self.program(tool)?;
        let mut all: Vec<&OsStr> = leading.iter().map(|path| path.as_os_str()).collect();
        all.extend(arguments.iter().map(OsStr::new));
        let (outcome, answer) = program::ask(program.as_os_str(), &all, &[], deadline)?;
        match outcome {
            Outcome::Succeeded => Ok(answer),
            Outcome::Failed { status, stderr } => Err(ToolError::Failed {
                tool,
                status,
                stderr,
            }),
            Outcome::Unknown { waited } => Err(ToolError::NoAnswer {
                tool,
                seconds: waited.as_secs(),
            }),
        }
    }

    /// The program to start and the arguments before the tool's own.
    fn program(&self, tool: &'static str) -> Result<(PathBuf, Vec<PathBuf>), ToolError> {
        let is_there = |place: &&str| self.root.resolve(&format!("{place}/{tool}")).is_ok();
        if PLACES.iter().any(is_there) {
            return Ok((
                self.chroot.clone(),
                vec![self.root.path().to_owned(), tool.into()],
            ));
        }
        if self.is_live {
            return Ok((tool.into(), Vec::new()));
        }
        Err(ToolError::NotInstalled { tool })
    }

    fn fact(&self, tool: &'static str, arguments: &[&str], deadline: Duration) -> Fact<String> {
        match self.ask(tool, arguments, deadline) {
            Ok(answer) => Fact::Known(answer.trim().to_owned()),
            Err(error) => Fact::Unreadable(chain(&error)),
        }
    }

    /// The firewall's rules.
    #[must_use]
    pub fn firewall(&self) -> ToolAnswers {
        if ToolAnswers::are_recorded(&self.root) {
            return ToolAnswers::recorded(&self.root);
        }
        ToolAnswers {
            nft_ruleset: self.fact("nft", &["-j", "list", "ruleset"], QUESTION),
            firewalld_zones: self.fact("firewall-cmd", &["--list-all-zones"], QUESTION),
            ..ToolAnswers::default()
        }
    }

    /// Settings in the firmware of the given functions.
    #[must_use]
    pub fn firmware(&self, functions: &[PciAddress]) -> ToolAnswers {
        if ToolAnswers::are_recorded(&self.root) {
            return ToolAnswers::recorded(&self.root);
        }
        let answers = functions.iter().map(|pci| (*pci, self.firmware_of(*pci)));
        ToolAnswers {
            firmware: answers.collect(),
            ..ToolAnswers::default()
        }
    }

    /// A card does not know every setting: each is asked by itself, and one that it does not know is left out.
    fn firmware_of(&self, pci: PciAddress) -> Fact<String> {
        let address = pci.to_string();
        let mut answers = Vec::new();
        let mut first_error = None;
        for setting in FIRMWARE_SETTINGS {
            let arguments = ["-e", "-d", address.as_str(), "query", setting];
            match self.ask("mstconfig", &arguments, FIRMWARE) {
                Ok(answer) => answers.push(answer),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        match first_error {
            Some(error) if answers.is_empty() => Fact::Unreadable(chain(&error)),
            _ => Fact::Known(answers.join("\n")),
        }
    }

    /// Tuning of the host, as far as `asked` needs it.
    #[must_use]
    pub fn tuning(&self, machine: &Machine, asked: Asked) -> Tuning {
        let mut answers = if asked.scope.firewall {
            self.firewall()
        } else {
            ToolAnswers::default()
        };
        let functions = asked.firmware(machine);
        if !functions.is_empty() {
            answers.firmware = self.firmware(&functions).firmware;
        }
        tuning::tuning(&self.root, machine, &answers, asked.scope)
    }

    /// Tuning of the host, all of it.
    #[must_use]
    pub fn everything(&self, machine: &Machine) -> Tuning {
        let physical = machine.physical_nics();
        let functions: Vec<_> = physical.filter_map(|nic| nic.pci).collect();
        let answers = ToolAnswers {
            firmware: self.firmware(&functions).firmware,
            ..self.firewall()
        };
        let mut tuning = tuning::tuning(
            &self.root,
            machine,
            &answers,
            Scope {
                users: false,
                ..Scope::ALL
            },
        );
        tuning.users = self.users();
        tuning
    }

    /// Who uses RDMA now. Every process is looked at: asked before an action, not every turn.
    #[must_use]
    pub fn users(&self) -> RdmaUsers {
        let answers = if ToolAnswers::are_recorded(&self.root) {
            ToolAnswers::recorded(&self.root)
        } else {
            ToolAnswers {
                rdma_queue_pairs: self.fact("rdma", &["-j", "resource", "show", "qp"], QUESTION),
                rdma_connections: self.fact("rdma", &["-j", "resource", "show", "cm_id"], QUESTION),
                ..ToolAnswers::default()
            }
        };
        users::read(&self.root, &answers)
    }
}

#[cfg(test)]
mod tests;
