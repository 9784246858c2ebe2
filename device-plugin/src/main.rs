//! `device-plugin`: see `device-plugin --help`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use device_plugin::cli::{Cli, Command};
use device_plugin::serve::serve;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

fn main() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(run(Cli::parse().command));
    // A read that hangs in a NIC's firmware must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let mut code = 0;
    match command {
        Command::Serve(args) => {
            log(args.log_json());
            let (mut term, mut int) = (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            );
            let shutdown = async move {
                tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
            };
            serve(args.options(), shutdown).await;
        }
        Command::Discover(args) => print!("{}", args.run()?),
        Command::Doctor(args) => {
            let (text, verdict) = args.run().await?;
            print!("{text}");
            code = verdict;
        }
        Command::Capture(args) => print!("{}", args.run()?),
    }
    Ok(ExitCode::from(code))
}

fn log(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if json {
        builder.json().init();
    } else {
        builder.init();
    }
}
