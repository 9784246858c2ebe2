//! `e2e`: a local Kubernetes with simulated machines.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};
use e2e::cluster::Cluster;
use e2e::{bench, demo, foreign, node, supervisor};

/// A real Kubernetes on this machine, without Docker, whose nodes look like real GPU machines.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  e2e up --node nvidia-dgx-a100 --node azure-ndv5-h100\n  e2e kubectl -- get nodes\n  e2e down"
)]
struct Cli {
    /// Name of the cluster; several can run side by side.
    #[arg(long, global = true, default_value = "local")]
    cluster: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build what is missing and start a cluster that stays until `down`.
    Up {
        /// Machine file that a node shows (a name in topology/tests/machines, or a path); one node each.
        #[arg(long = "node", default_values_t = ["nvidia-dgx-a100".to_owned()])]
        nodes: Vec<String>,
    },
    /// End the cluster and everything in it.
    Down,
    /// Say what runs and how to reach it.
    Status,
    /// Run kubectl as an admin of the cluster.
    Kubectl {
        /// Arguments for kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run helm as an admin of the cluster.
    Helm {
        /// Arguments for helm.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The main job, end to end: three machines, the chart, a pod set, and who got what.
    Demo,
    /// Figures of the product as it is shipped; some ten minutes to build the first time. Run it as `make bench` does.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::Options),
    #[command(hide = true)]
    ClusterInit {
        work: PathBuf,
        #[arg(long)]
        detached: bool,
    },
    /// Hold a control plane until this program ends (tests of the teardown).
    #[command(hide = true)]
    Hold,
    #[command(hide = true)]
    ForeignAdvertiser { resource: String },
    #[command(hide = true)]
    NodeInit { work: PathBuf, spec: PathBuf },
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.command {
        Command::Up { nodes } => up(&cli.cluster, &nodes),
        Command::Down => Cluster::attach(&cli.cluster)?.end(),
        Command::Status => status(&Cluster::attach(&cli.cluster)?),
        Command::Kubectl { arguments } => {
            show(&Cluster::attach(&cli.cluster)?.kubectl(arguments.iter().map(String::as_str))?)
        }
        Command::Helm { arguments } => {
            show(&Cluster::attach(&cli.cluster)?.helm(arguments.iter().map(String::as_str))?)
        }
        Command::Demo => demo::run(),
        Command::Bench(options) => bench::run(&options),
        Command::ClusterInit { work, detached } => supervisor::run(&work, detached),
        Command::Hold => {
            let _cluster = Cluster::control_plane(&cli.cluster)?;
            loop {
                std::thread::park();
            }
        }
        Command::ForeignAdvertiser { resource } => {
            foreign::run(&resource, Path::new("/var/lib/kubelet/device-plugins"))
        }
        Command::NodeInit { work, spec } => node::init(&work, &spec),
    }
}

fn up(name: &str, machines: &[String]) -> Result<()> {
    let mut cluster = Cluster::start_detached(name)?;
    for machine in machines {
        cluster.add_node((machine != "none").then_some(machine.as_str()), |_| ())?;
    }
    cluster.wait_for_nodes()?;
    status(&cluster)
}

fn status(cluster: &Cluster) -> Result<()> {
    for (node, machine) in cluster.nodes() {
        println!("{node}  shows {}", machine.as_deref().unwrap_or("no GPU"));
    }
    show(&cluster.kubectl(["get", "nodes", "-o", "wide"])?)?;
    println!("Logs and disks: {}", cluster.work().display());
    println!("Next: cargo run -p e2e -- kubectl -- get pods -A");
    Ok(())
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the arms of main's match return a result"
)]
fn show(text: &str) -> Result<()> {
    print!("{text}");
    Ok(())
}
