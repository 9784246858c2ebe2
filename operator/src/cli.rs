//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Cluster-side operator for GPU-direct RDMA.
#[derive(Debug, Parser)]
#[command(name = "operator", version, about, long_about = None)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Assigns nodes, runs the DaemonSets, grants maintenance and keeps status; until SIGTERM
    Run {
        /// The configuration file that the chart writes
        #[arg(
            long,
            value_name = "FILE",
            default_value = "/etc/gpurdma/operator.yaml"
        )]
        config: PathBuf,
        /// Where and who this is
        #[command(flatten)]
        place: Place,
    },
    /// Applies the CRDs and the admission policy and waits until they are served (the chart's pre-install hook)
    Install {
        /// Where and who this is
        #[command(flatten)]
        place: Place,
    },
    /// Removes DaemonSets, node labels, taints and finalizers; keeps CRDs and objects (the chart's pre-delete hook)
    Uninstall {
        /// Where and who this is
        #[command(flatten)]
        place: Place,
    },
}

/// Where and who this is.
#[derive(Debug, Args)]
pub struct Place {
    /// Namespace of the release
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: String,
    /// Name of this pod: holder of the Lease and reporter of Events
    #[arg(
        long,
        env = "POD_NAME",
        value_name = "NAME",
        default_value = "gpu-rdma-operator"
    )]
    pub pod: String,
}
