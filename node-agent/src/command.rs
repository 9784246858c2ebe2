//! Runs one program with a deadline, without a shell. The only place of the agent that starts a process; called by
//! [`crate::modules`]. A module load can hang in the kernel, so nothing here waits for ever, not even for a killed
//! child.

use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
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

/// Runs `program` with `arguments` and an empty environment but for `PATH`.
pub fn run(
    program: &OsStr,
    arguments: &[&OsStr],
    deadline: Duration,
) -> Result<Outcome, CommandError> {
    let failed = |operation| {
        move |source| CommandError {
            operation,
            program: program.to_string_lossy().into_owned(),
            source,
        }
    };
    let mut child = command(program, arguments)
        .spawn()
        .map_err(failed("start"))?;
    let stderr = child.stderr.take().map(read_in_background);
    let status = wait(&mut child, deadline).map_err(failed("wait for"))?;
    Ok(match status {
        Some(status) if status.success() => Outcome::Succeeded,
        Some(status) => Outcome::Failed {
            status: status.to_string(),
            stderr: text(stderr.as_ref()),
        },
        None => {
            abandon(child);
            Outcome::Unknown { waited: deadline }
        }
    })
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
        .stdout(Stdio::null())
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
fn read_in_background(stderr: ChildStderr) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut limited = stderr.take(STDERR_LIMIT);
        let read = limited.read_to_end(&mut kept);
        // Nobody listens any more once the deadline is over.
        let _ = sender.send(kept);
        let drained = std::io::copy(&mut limited.into_inner(), &mut std::io::sink());
        tracing::trace!(?read, ?drained, "read stderr");
    });
    receiver
}

fn text(receiver: Option<&mpsc::Receiver<Vec<u8>>>) -> String {
    // A grandchild may keep the pipe open: do not wait for it long.
    let bytes = receiver.and_then(|r| r.recv_timeout(Duration::from_secs(1)).ok());
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
