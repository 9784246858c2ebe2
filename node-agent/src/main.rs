//! `node-agent`: see [`node_agent::cli`].

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use node_agent::cli::{Cli, execute};
use tracing_subscriber::EnvFilter;

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    log();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let code = runtime.block_on(execute(cli));
    // A module load that hangs in the kernel must not hold the process.
    runtime.shutdown_background();
    Ok(ExitCode::from(code?))
}

/// To stderr: text for a person, JSON for a collector.
fn log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.init();
    } else {
        builder.json().init();
    }
}
