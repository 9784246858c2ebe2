//! The command line: what each subcommand takes, and its run.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use host::root::Root;
use topology::distance::Distance;
use topology::policy::{NicSharing, ResourcePolicy, UnknownDistance};

use crate::accept::Source;
use crate::capture;
use crate::discover::{self, Format, Origin};
use crate::doctor::{self, Where};
use crate::serve;
use crate::timing::Timing;

/// Kubelet device plugin for GPU+NIC pairs.
#[derive(Debug, Parser)]
#[command(version, about, long_about = None, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the resources of the node file to the kubelet
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Show which NIC is closest to which GPU, the pairs, and why
    #[command(after_help = DISCOVER_EXAMPLES)]
    Discover(DiscoverArgs),
    /// Check what stands between this node and its pairs, and what to do about it
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Copy what `discover` reads of this machine into a directory, to look at it elsewhere
    #[command(after_help = CAPTURE_EXAMPLES)]
    Capture(CaptureArgs),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  device-plugin serve
  device-plugin serve --kubelet-dir /data/kubelet/device-plugins --boot-id-file /host/boot_id

Without a node file of this boot nothing is registered; the plugin waits for one. RUST_LOG=debug logs more.";

const DISCOVER_EXAMPLES: &str = "\
Examples:
  device-plugin discover
  device-plugin discover --root /tmp/captured -o json
  device-plugin discover --machine dgx.yaml -o svg > dgx.svg
  device-plugin discover --machine /opt/microsoft/ndv5-topo.xml
  device-plugin discover --max-distance phb --nics-per-gpu 2
  device-plugin discover --topology-file /var/run/nvidia-topologyd/virtualTopology.xml

It reads only. The JSON and YAML name their schema (`schema`, now 1.0), which docs/discover.md describes.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  device-plugin doctor
  kubectl exec -n gpu-rdma-operator ds/gpurdma-device-plugin -- device-plugin doctor -o json

Exit code: 0 nothing is wrong, 1 a check failed, 2 doctor itself failed, 3 something could not be found out.";

const CAPTURE_EXAMPLES: &str = "\
Examples:
  device-plugin capture --out /tmp/captured
  device-plugin discover --root /tmp/captured";

/// Where the node's files are.
#[derive(Clone, Debug, Args)]
pub struct Files {
    /// Node file that the agent writes; mount its directory, not the file
    #[arg(
        long,
        env = "GPURDMA_NODE_FILE",
        default_value = "/run/gpurdma/node.json"
    )]
    node_file: PathBuf,
    /// File with the boot id of the host; the one in a container's own /proc may be another
    #[arg(
        long,
        env = "GPURDMA_BOOT_ID_FILE",
        default_value = "/proc/sys/kernel/random/boot_id"
    )]
    boot_id_file: PathBuf,
    /// The kubelet's device-plugins directory
    #[arg(
        long,
        env = "GPURDMA_KUBELET_DIR",
        default_value = "/var/lib/kubelet/device-plugins"
    )]
    kubelet_dir: PathBuf,
    /// Directory that holds the machine's sys
    #[arg(long, default_value = "/")]
    root: PathBuf,
}

impl Files {
    fn source(&self) -> Source {
        Source {
            node_file: self.node_file.clone(),
            boot_id_file: self.boot_id_file.clone(),
        }
    }
}

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    files: Files,
    /// The host's /dev, where it is mounted: optional device nodes that are not there are left out of answers
    #[arg(long, env = "GPURDMA_DEV")]
    dev: Option<PathBuf>,
    /// Seconds that a device which left the node file stays in the list, Unhealthy
    #[arg(long, default_value_t = 300)]
    quiet_seconds: u32,
    /// Log as JSON
    #[arg(long)]
    log_json: bool,
}

impl ServeArgs {
    /// Whether to log as JSON.
    #[must_use]
    pub fn log_json(&self) -> bool {
        self.log_json
    }

    /// The server's options.
    #[must_use]
    pub fn options(&self) -> serve::Options {
        let quiet = std::time::Duration::from_secs(self.quiet_seconds.into());
        serve::Options {
            source: self.files.source(),
            kubelet_dir: self.files.kubelet_dir.clone(),
            root: Root::new(&self.files.root),
            dev: self.dev.clone(),
            timing: Timing {
                quiet,
                ..Timing::default()
            },
        }
    }
}

/// `discover`.
#[derive(Debug, Args)]
pub struct DiscoverArgs {
    /// Directory that holds the machine's sys and proc
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        conflicts_with = "machine"
    )]
    root: PathBuf,
    /// Description instead of a running machine: machine file (YAML), NCCL topology file or hwloc export (XML)
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// NCCL topology file that states what /sys does not show
    #[arg(long, value_name = "FILE")]
    topology_file: Option<PathBuf>,
    /// Farthest NIC that a pair may have
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "pxb")]
    max_distance: Level,
    /// What to do where /sys does not show the distance, as in many VMs
    #[arg(long, value_name = "RULE", value_enum, default_value = "topology-file")]
    unknown_distance: Unknown,
    /// NICs wanted per GPU
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=64)
    )]
    nics_per_gpu: u32,
    /// Never let two GPUs share a NIC
    #[arg(long)]
    no_sharing: bool,
    /// Form of the answer
    #[arg(short, long, value_name = "FORM", value_enum, default_value = "table")]
    output: Format,
}

impl DiscoverArgs {
    fn policy(&self) -> ResourcePolicy {
        ResourcePolicy {
            max_distance: self.max_distance.into(),
            unknown_distance: self.unknown_distance.into(),
            nics_per_gpu: self.nics_per_gpu,
            nic_sharing: if self.no_sharing {
                NicSharing::Never
            } else {
                NicSharing::WhenScarce
            },
            ..ResourcePolicy::default()
        }
    }

    /// The answer.
    pub fn run(&self) -> anyhow::Result<String> {
        let origin = self
            .machine
            .clone()
            .map_or_else(|| Origin::Root(self.root.clone()), Origin::File);
        let options = host::machine::Options::default();
        let machine = discover::read(&origin, self.topology_file.as_deref(), &options)?;
        Ok(discover::print(&machine, &self.policy(), self.output)?)
    }
}

/// Levels of `nvidia-smi topo`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    /// At most one PCIe switch
    Pix,
    /// Several PCIe switches
    Pxb,
    /// A host bridge
    Phb,
    /// Two host bridges of one NUMA node
    Node,
    /// Between NUMA nodes
    Sys,
}

impl From<Level> for Distance {
    fn from(level: Level) -> Self {
        match level {
            Level::Pix => Self::Pix,
            Level::Pxb => Self::Pxb,
            Level::Phb => Self::Phb,
            Level::Node => Self::Node,
            Level::Sys => Self::Sys,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Unknown {
    /// Believe a topology file; without one, no pair
    TopologyFile,
    /// Never a pair
    Refuse,
    /// Pair by index order
    ByOrder,
}

impl From<Unknown> for UnknownDistance {
    fn from(unknown: Unknown) -> Self {
        match unknown {
            Unknown::TopologyFile => Self::TopologyFile,
            Unknown::Refuse => Self::Refuse,
            Unknown::ByOrder => Self::ByOrder,
        }
    }
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    files: Files,
    /// Form of the answer
    #[arg(short, long, value_enum, default_value = "text")]
    output: DoctorFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DoctorFormat {
    Text,
    Json,
}

impl DoctorArgs {
    /// The answer and the exit code.
    pub async fn run(&self) -> anyhow::Result<(String, u8)> {
        let files = &self.files;
        let at = Where {
            source: files.source(),
            kubelet_dir: files.kubelet_dir.clone(),
            root: Root::new(&files.root),
        };
        let checks = doctor::checks(&doctor::gather(&at).await);
        let text = match self.output {
            DoctorFormat::Text => doctor::render(&checks),
            DoctorFormat::Json => {
                serde_json::to_string_pretty(&checks).context("write JSON")? + "\n"
            }
        };
        Ok((text, doctor::exit_code(&checks)))
    }
}

/// `capture`.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// Directory that holds the machine's sys and proc
    #[arg(long, default_value = "/")]
    root: PathBuf,
    /// Directory to make; it must be new or empty
    #[arg(long)]
    out: PathBuf,
}

impl CaptureArgs {
    /// Copies, and says what could not be read.
    pub fn run(&self) -> anyhow::Result<String> {
        let left_out = capture::capture(&self.root, &self.out)?;
        let missing = left_out.iter().map(|line| format!("  left out: {line}\n"));
        let first = format!(
            "captured into {}; addresses and serial numbers are masked\n",
            self.out.display()
        );
        Ok(std::iter::once(first).chain(missing).collect())
    }
}

#[cfg(test)]
mod tests;
