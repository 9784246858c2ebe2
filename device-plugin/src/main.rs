//! `device-plugin`: see `device-plugin --help`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use device_plugin::cli::{Cli, Command};
use device_plugin::serve::serve;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> anyhow::Result<ExitCode> {
    let command = Cli::parse().command;
    // One thread: the answer to a call takes half as long without a hand-over to another. What may wait is read on threads
    // of its own.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build()?;
    let result = runtime.block_on(run(command));
    // A read that hangs in a NIC's firmware must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    }))
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let (text, code) = match command {
        Command::Serve(args) => {
            log(args.log_json());
            let mut term = signal(SignalKind::terminate())?;
            let mut int = signal(SignalKind::interrupt())?;
            let shutdown = async move {
                tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
            };
            serve(args.options(), shutdown).await;
            (String::new(), 0)
        }
        Command::Discover(args) => (args.run()?, 0),
        Command::Doctor(args) => args.run().await?,
        Command::Capture(args) => (args.run()?, 0),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(code))
}

fn log(json: bool) {
    let asked = std::env::var("RUST_LOG").ok();
    let levels = asked.and_then(|text| text.parse().ok());
    let levels = levels.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let to_stderr = fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(levels);
    if json {
        registry.with(to_stderr.json()).init();
    } else {
        let color = std::io::stderr().is_terminal();
        registry.with(to_stderr.with_ansi(color)).init();
    }
}
