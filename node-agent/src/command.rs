//! Runs one program with a deadline, without a shell. The only place of the agent that starts a process; called by
//! [`crate::modules`], [`crate::tools`], [`crate::packages`] and [`crate::job`]. A module load can hang in the kernel, so
//! nothing here waits for ever, not even for a killed child.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Succeeded,
    /// Another exit code or a signal; what it wrote to stderr.
    Failed {
        /// Exit status, as `std` prints it.
        status: String,
        /// The end of stderr, one line.
        stderr: String,
    },
    /// It did not end in time: its effect is unknown.
    Unknown {
        /// How long was waited.
        waited: Duration,
    },
}

/// The program could not be started or watched.
#[derive(Debug, thiserror::Error)]
#[error("{operation} `{program}`")]
pub struct CommandError {
    /// What was tried.
    operation: &'static str,
    /// The program.
    program: String,
    /// Why it failed.
    #[source]
    source: std::io::Error,
}

/// Bytes of stderr that are kept.
const STDERR_LIMIT: u64 = 4096;

/// Bytes of an answer that are kept: a large ruleset has some megabytes.
const STDOUT_LIMIT: u64 = 16 << 20;

/// Runs `program` with `arguments` and an empty environment but for `PATH`.
pub fn run(
    program: &OsStr,
    arguments: &[&OsStr],
    deadline: Duration,
) -> Result<Outcome, CommandError> {
    let mut command = command(program, arguments);
    command.stdout(Stdio::null());
    finish(command, deadline).map(|(outcome, _)| outcome)
}

/// [`run`], with what the program wrote to its standard output.
pub fn ask(
    program: &OsStr,
    arguments: &[&OsStr],
    deadline: Duration,
) -> Result<(Outcome, String), CommandError> {
    let mut command = command(program, arguments);
    command.stdout(Stdio::piped());
    finish(command, deadline)
}

fn finish(mut command: Command, deadline: Duration) -> Result<(Outcome, String), CommandError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |operation| {
        let program = program.clone();
        move |source| CommandError {
            operation,
            program,
            source,
        }
    };
    let mut child = command.spawn().map_err(failed("start"))?;
    let stderr = child
        .stderr
        .take()
        .map(|pipe| read_in_background(pipe, STDERR_LIMIT));
    let stdout = child
        .stdout
        .take()
        .map(|pipe| read_in_background(pipe, STDOUT_LIMIT));
    let status = wait(&mut child, deadline).map_err(failed("wait for"))?;
    let outcome = match status {
        Some(status) if status.success() => Outcome::Succeeded,
        Some(status) => Outcome::Failed {
            status: status.to_string(),
            stderr: one_line(&text(stderr.as_ref())),
        },
        None => {
            abandon(child);
            return Ok((Outcome::Unknown { waited: deadline }, String::new()));
        }
    };
    Ok((outcome, text(stdout.as_ref())))
}

/// Names and values of environment variables.
pub type Environment<'a> = &'a [(&'a str, &'a str)];

/// Runs `program` with more of an environment; the answer is what it wrote to stdout.
pub fn output_with(
    program: &OsStr,
    arguments: &[&OsStr],
    environment: Environment<'_>,
    deadline: Duration,
) -> Result<(Outcome, String), CommandError> {
    let mut command = command(program, arguments);
    command
        .envs(environment.iter().copied())
        .stdout(Stdio::piped());
    finish(command, deadline)
}

/// A program that was started and is not waited for.
#[derive(Debug)]
pub struct Started {
    /// Its process.
    pub pid: u32,
    ended: mpsc::Receiver<()>,
}

impl Started {
    /// Whether it ends within `patience`.
    #[must_use]
    pub fn ends_within(&self, patience: Duration) -> bool {
        // A sender that is gone is a thread that has waited.
        self.ended.recv_timeout(patience) != Err(mpsc::RecvTimeoutError::Timeout)
    }
}

/// Starts a program that writes to `log` and goes on when the agent ends.
pub fn start(
    program: &OsStr,
    arguments: &[&OsStr],
    environment: Environment<'_>,
    log: File,
) -> Result<Started, CommandError> {
    let failed = |source| CommandError {
        operation: "start",
        program: program.to_string_lossy().into_owned(),
        source,
    };
    let errors = log.try_clone().map_err(failed)?;
    let mut child = command(program, arguments)
        .envs(environment.iter().copied())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .map_err(failed)?;
    let pid = child.id();
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let waited = child.wait();
        tracing::info!(pid, ?waited, "a program that outlives its turn has ended");
        // Nobody may be listening any more.
        let _ = sender.send(());
    });
    Ok(Started { pid, ended })
}

fn command(program: &OsStr, arguments: &[&OsStr]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn wait(child: &mut Child, deadline: Duration) -> std::io::Result<Option<ExitStatus>> {
    let until = Instant::now() + deadline;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= until {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills the child and lets a thread wait for it: one that hangs in the kernel dies when the kernel lets it.
fn abandon(mut child: Child) {
    let killed = child.kill();
    std::thread::spawn(move || {
        let waited = child.wait();
        tracing::info!(
            ?killed,
            ?waited,
            "a program that met its deadline has ended"
        );
    });
}

/// The pipe is read beside the waiting, so that a talkative program does not stall on a full pipe.
fn read_in_background(pipe: impl Read + Send + 'static, limit: u64) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut limited = pipe.take(limit);
        let read = limited.read_to_end(&mut kept);
        // Nobody listens any more once the deadline is over.
        let _ = sender.send(kept);
        let drained = std::io::copy(&mut limited.into_inner(), &mut std::io::sink());
        tracing::trace!(?read, ?drained, "read a program's output");
    });
    receiver
}

fn text(receiver: Option<&mpsc::Receiver<Vec<u8>>>) -> String {
    // A grandchild may keep the pipe open: do not wait for it long.
    let bytes = receiver.and_then(|r| r.recv_timeout(Duration::from_secs(1)).ok());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
