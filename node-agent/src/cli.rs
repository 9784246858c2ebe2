//! The command line: `facts`, `plan`, `apply`, `verify`, `explain` for a person on the node, `run` for the DaemonSet.

mod capture;
mod explain;
mod host_args;
mod offline;
mod verify;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use crds::GpuRdmaNode;
use crds::cluster::Mode;
use crds::node::{Cost, NodeConfig};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use host_args::HostArgs;

use crate::action::Explain;
use crate::apply::{Applied, Permit, apply};
use crate::asked::Asked;
use crate::decide::{Decision, decide};
use crate::desired::Desired;
use crate::gather::gather;
use crate::observed::Observed;
use crate::render;
use crate::report::status;
use crate::session::Session;
use crate::settings::Settings;
use crate::tools::Tools;

/// Per-node agent for GPU-direct RDMA: reads the host, plans, acts, verifies, reports.
#[derive(Debug, Parser)]
#[command(name = "node-agent", version, about, max_term_width = 100)]
pub struct Cli {
    /// Where the host is.
    #[command(flatten)]
    pub host: HostArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print everything that can be read of the host. Changes nothing.
    Facts {
        /// Format of the output.
        #[arg(short, long, value_enum, default_value = "yaml")]
        output: Output,
    },
    /// Print what would be done and handed out, and what stands in the way. Changes nothing.
    Plan {
        /// What is asked.
        #[command(flatten)]
        config: ConfigArgs,
        /// Plan for the machine of this file, which `facts` printed, instead of reading the host; shows actions and
        /// findings only.
        #[arg(long, value_name = "FILE", conflicts_with = "restore")]
        facts: Option<PathBuf>,
        /// Format of the output.
        #[arg(short, long, value_enum, default_value = "text")]
        output: PlanOutput,
        /// Plan the way back: undo what the journal says this agent changed.
        #[arg(long)]
        restore: bool,
    },
    /// Do what `plan` prints: write the node file and CDI specification, run the actions that cost nothing.
    Apply {
        /// What is asked.
        #[command(flatten)]
        config: ConfigArgs,
        /// Also run actions that cost this much; the default runs free actions only.
        #[arg(long, value_enum)]
        allow: Option<Allow>,
        /// Undo what the journal says this agent changed, instead of doing what the file asks.
        #[arg(long)]
        restore: bool,
    },
    /// Read again whether the host is as asked, setting by setting. Changes nothing.
    ///
    /// One line for each: `in effect`, `written` (on disk or in firmware, and in effect after a reboot or restart), `differs`
    /// (with what was seen), `unknown` (could not be read, with why). Exit code 0 where nothing differs, 1 where something
    /// differs or only a reboot is missing.
    Verify {
        /// What is asked.
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Print what a finding means, what is right, how to look and how to fix it; without an id, the list of all.
    Explain {
        /// The finding's id, as `PKEY_NOT_GRANTED`.
        id: Option<String>,
        /// Write all pages into this directory instead.
        #[arg(long, value_name = "DIR", conflicts_with = "id")]
        write: Option<PathBuf>,
    },
    /// Copy what can be read of the host into a directory, for a bug report: `facts` and `plan` with --root DIR then read it as
    /// they read the host. Addresses, hardware addresses, GUIDs, serial numbers and host names are masked. Changes nothing.
    Capture {
        /// New or empty directory, a path of this program's own file system.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Serve the node: watch its `GpuRdmaNode`, act, report. What the `DaemonSet` runs.
    Run {
        /// Name of this Node.
        #[arg(long, env = "NODE_NAME")]
        node_name: String,
    },
}

/// What is asked of the node.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    /// A `GpuRdmaNode`, or a bare node configuration, in YAML or JSON.
    #[arg(long = "desired", alias = "config", value_name = "FILE")]
    config: PathBuf,
}

/// Format of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlanOutput {
    /// For people.
    Text,
    /// What is there and what would be, to be read as a change.
    Diff,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

impl From<PlanOutput> for Output {
    fn from(output: PlanOutput) -> Self {
        match output {
            PlanOutput::Text | PlanOutput::Diff => Self::Text,
            PlanOutput::Yaml => Self::Yaml,
            PlanOutput::Json => Self::Json,
        }
    }
}

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

/// What actions may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Allow {
    /// Running RDMA jobs may break.
    Traffic,
    /// The node may reboot.
    Reboot,
}

/// Runs the command; the answer is the exit code.
pub async fn execute(cli: Cli) -> anyhow::Result<u8> {
    let settings = cli.host.settings()?;
    match cli.command {
        Command::Facts { output } => print(output, &facts(&settings)).map(|()| 0),
        Command::Plan {
            config,
            facts: Some(facts),
            output,
            ..
        } => offline::plan_for(&facts, &config, output).map(|()| 0),
        Command::Plan {
            config,
            facts: None,
            output,
            restore,
        } => plan(&settings, &config, output, restore).await,
        Command::Apply {
            config,
            allow,
            restore,
        } => apply_once(&settings, &config, allow, restore).await,
        Command::Explain { id, write: None } => explain::explain(id.as_deref()).map(|()| 0),
        Command::Explain {
            write: Some(directory),
            ..
        } => explain::write(&directory).map(|()| 0),
        Command::Verify { config } => verify::verify(&settings, &config).await,
        Command::Capture { out } => capture::capture(&settings, &out).map(|()| 0),
        Command::Run { node_name } => {
            let config = kube::Config::incluster()
                .context("read the pod's service account: `run` is for a pod")?;
            let client = kube::Client::try_from(config).context("connect to the API server")?;
            Box::pin(crate::run::run(client, settings, node_name))
                .await
                .context("run")?;
            Ok(0)
        }
    }
}

fn facts(settings: &Settings) -> host::facts::Facts {
    let options = host::machine::Options {
        gpu_vendors: settings.gpu_vendors.clone(),
        ..host::machine::Options::default()
    };
    let mut facts = host::facts::facts(&settings.root, &options, None);
    facts.tuning = Tools::new(settings).everything(&facts.machine);
    facts
}

/// A process that has seen nothing yet and is asked once.
fn session(desired: &Desired) -> Session {
    let mut session = Session::default();
    session.asked = Asked::of(desired);
    session
}

/// What is asked: a `GpuRdmaNode`, told by its `kind`, or a bare configuration.
pub fn desired(path: &Path) -> anyhow::Result<Desired> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let value: serde_yaml::Value =
        serde_yaml::from_str(&text).with_context(|| format!("parse {}", path.display()))?;
    if value.get("kind").is_some() {
        let node: GpuRdmaNode = known_fields(&text, "spec.")
            .with_context(|| format!("{}: not a GpuRdmaNode", path.display()))?;
        return Ok(Desired::of_node(&node));
    }
    let config: NodeConfig = known_fields(&text, "").with_context(|| {
        format!(
            "{}: neither a GpuRdmaNode nor a node configuration",
            path.display()
        )
    })?;
    Desired::of_config(config).context("hash the configuration")
}

/// Reads YAML in which every field below `part` is one that is known: a misspelt one would ask for nothing.
fn known_fields<T: DeserializeOwned>(text: &str, part: &str) -> anyhow::Result<T> {
    let mut unknown = Vec::new();
    let note = |field: serde_ignored::Path<'_>| {
        let field = field.to_string();
        if field.starts_with(part) {
            unknown.push(field);
        }
    };
    let value = serde_ignored::deserialize(serde_yaml::Deserializer::from_str(text), note)?;
    anyhow::ensure!(
        unknown.is_empty(),
        "no such field: {}; `kubectl explain gpurdmanode.spec.config` lists those there are",
        unknown.join(", ")
    );
    Ok(value)
}

/// What a person asked, what was read, what should be.
async fn look(
    settings: &Settings,
    config: &ConfigArgs,
    restore: bool,
) -> anyhow::Result<(Desired, Observed, Decision)> {
    let asked = desired(&config.config)?;
    let desired = Desired {
        restore: restore || asked.restore,
        ..asked
    };
    let now = Timestamp::now();
    let observed = gather(settings, &mut session(&desired), now).await?;
    let decision = decide(&observed, &desired, now);
    Ok((desired, observed, decision))
}

async fn plan(
    settings: &Settings,
    config: &ConfigArgs,
    output: PlanOutput,
    restore: bool,
) -> anyhow::Result<u8> {
    let (desired, observed, decision) = look(settings, config, restore).await?;
    let status = status(&observed, &desired, &decision, None, Timestamp::now())?;
    match output {
        PlanOutput::Text => print!("{}", render::text(&decision.plan, &status)),
        PlanOutput::Diff => print!("{}", render::diff(&decision.plan, &decision.findings)),
        _ => print(output.into(), &status)?,
    }
    Ok(0)
}

async fn apply_once(
    settings: &Settings,
    config: &ConfigArgs,
    allow: Option<Allow>,
    restore: bool,
) -> anyhow::Result<u8> {
    let mode = desired(&config.config)?.mode;
    if mode != Mode::Enforce {
        bail!("spec.mode is {mode:?}: nothing may be changed; set it to Enforce, or use `plan`");
    }
    let now = Timestamp::now();
    // Before anything is read: what another one does meanwhile would be unknown here.
    let _lock = crate::lock::take(&settings.root, "node-agent apply", now)?;
    if let Some(intent) = crate::execute::recover(settings)? {
        println!("taken back: {}", intent.change.place());
    }
    let (desired, observed, decision) = look(settings, config, restore).await?;
    let allowed = match allow {
        None => Cost::None,
        Some(Allow::Traffic) => Cost::Traffic,
        Some(Allow::Reboot) => Cost::Reboot,
    };
    let permit = Permit {
        allowed,
        acts: true,
    };
    let applied = apply(settings, &observed, &desired, &decision, permit, now)?;
    print!("{}", render::applied(&applied));
    let left = leftovers(&decision, &applied, allowed);
    for line in &left {
        println!("{line}");
    }
    let failed = applied.actions.iter().any(|(_, error)| error.is_some());
    Ok(u8::from(failed || !left.is_empty()))
}

/// What `apply` leaves for a person to do, one line each.
fn leftovers(decision: &Decision, applied: &Applied, allowed: Cost) -> Vec<String> {
    let accepted = decision.memory.maintenance.as_ref();
    let mut lines: Vec<String> = applied
        .waits
        .iter()
        .map(|user| format!("not run while RDMA is in use: {user}"))
        .collect();
    for action in &decision.plan.actions {
        let (kind, target) = (action.change.kind(), action.change.target());
        let cost = action.change.cost();
        if applied.memory.attempts.is_prepared(&action.change) {
            lines.push(format!(
                "prepared: {kind} {target}; in effect after a reboot"
            ));
        } else if cost > allowed && !accepted.is_some_and(|accepted| accepted.covers(action)) {
            lines.push(format!(
                "not run: {kind} {target} costs {cost:?}; allow it with --allow"
            ));
        }
    }
    if applied.more {
        lines.push("one granted action at a time: run it again for the next one".to_owned());
    }
    lines
}

fn print(output: Output, value: &impl Serialize) -> anyhow::Result<()> {
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(value)?),
        // Through JSON: the same names in both, and no tags of YAML's own.
        Output::Text | Output::Yaml => {
            print!("{}", serde_yaml::to_string(&serde_json::to_value(value)?)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
