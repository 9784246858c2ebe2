//! The operator's program: reads the command line and hands over to the library.

use std::process::ExitCode;

use clap::Parser;
use operator::cli::{Cli, Command};
use operator::{install, run, uninstall};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let result = match cli.command {
        Command::Run { config, place } => run::run(&config, &place.namespace, &place.pod).await,
        Command::Install { place } => install::install(&place.namespace).await,
        Command::Uninstall { place } => uninstall::uninstall(&place.namespace).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
