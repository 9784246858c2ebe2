//! Running other programs: no shell, the command line and its output in every error.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// `Command::new` with arguments.
pub fn command<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Runs to the end and returns what it printed; a failure carries the command line and the last of its output.
pub fn output(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("run {line}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{line}: {}\n{}{}",
            output.status,
            last_lines(&text, 30),
            last_lines(&errors, 30)
        );
    }
    Ok(text)
}

/// Runs to the end; what it printed is only shown when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// [`run`] of a program with arguments.
pub fn exec<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Result<()> {
    run(&mut command(program, args))
}

/// Starts a program that goes on, with its output in a file.
pub fn spawn_logged(command: &mut Command, log: &Path) -> Result<Child> {
    let line = shown(command);
    let file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("open {}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone().context("share the log")?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("start {line}"))
}

/// The last lines of a text, to show.
#[must_use]
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(count)..];
    last.iter().flat_map(|line| ["  ", line, "\n"]).collect()
}

fn shown(command: &Command) -> String {
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    parts
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
