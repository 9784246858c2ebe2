//! `node-agent`: see [`node_agent::cli`].

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use node_agent::cli::{Cli, execute};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    log();
    // What blocks runs on threads of its own; there is nothing to do in parallel.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let code = runtime.block_on(execute(cli));
    // A module load that hangs in the kernel must not hold the process.
    runtime.shutdown_background();
    Ok(ExitCode::from(code?))
}

/// To stderr: text for a person, JSON for a collector. `RUST_LOG` says how much: `debug`, or `info,node_agent=trace`.
fn log() {
    let asked = std::env::var("RUST_LOG").ok();
    let levels = asked.and_then(|text| text.parse().ok());
    let levels = levels.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let to_stderr = fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(levels);
    if std::io::stderr().is_terminal() {
        registry.with(to_stderr).init();
    } else {
        registry.with(to_stderr.json()).init();
    }
}
