//! Runs one of the field's tools (`ip`, `dcb`, `ethtool`) for its answer: typed arguments, no shell, an empty environment
//! but for `PATH`, a deadline, and no more output than a limit. Called by [`crate::facts::network`] only.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long a tool may take; they take milliseconds as a rule.
const DEADLINE: Duration = Duration::from_secs(5);

/// Longest answer.
const LIMIT: u64 = 8 << 20;

/// Why a tool gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// It could not be started or watched.
    #[error("{operation} `{what}`")]
    Run {
        /// What was tried.
        operation: &'static str,
        /// Program and arguments.
        what: String,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
    /// It ended with an error.
    #[error("`{what}`: {status}: {stderr}")]
    Failed {
        /// Program and arguments.
        what: String,
        /// Exit status.
        status: ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// It did not end in time.
    #[error("`{what}`: no answer within {seconds} s")]
    Hangs {
        /// Program and arguments.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
}

impl ProgramError {
    /// Whether the tool said that the kernel or the driver has no such thing.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(self, Self::Failed { stderr, .. } if stderr.contains("not supported"))
    }

    /// The message with that of its cause, on one line.
    pub(crate) fn chain(&self) -> String {
        match self {
            Self::Run { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// What `program` writes to its standard output.
pub(crate) fn answer(program: &str, arguments: &[&str]) -> Result<String, ProgramError> {
    let what = || format!("{program} {}", arguments.join(" "));
    let failed = |operation| {
        move |source| ProgramError::Run {
            operation,
            what: what(),
            source,
        }
    };
    let mut child = command(program, arguments)
        .spawn()
        .map_err(failed("start"))?;
    let stdout = child.stdout.take().map(in_background);
    let stderr = child.stderr.take().map(in_background);
    match wait(&mut child).map_err(failed("wait for"))? {
        Some(status) if status.success() => Ok(text(stdout.as_ref())),
        Some(status) => Err(ProgramError::Failed {
            what: what(),
            status,
            stderr: text(stderr.as_ref())
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        }),
        None => {
            abandon(child);
            Err(ProgramError::Hangs {
                what: what(),
                seconds: DEADLINE.as_secs(),
            })
        }
    }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The pipes are read beside the waiting, so that a long answer does not stall on a full pipe.
fn in_background(pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.take(LIMIT).read_to_end(&mut bytes);
        // Nobody listens any more once the deadline is over.
        _ = sender.send(read.map(|_| bytes).unwrap_or_default());
    });
    receiver
}

fn wait(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let until = Instant::now() + DEADLINE;
    let mut pause = Duration::from_micros(200);
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= until {
            return Ok(status);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Kills the child and lets a thread wait for it: one that hangs in the kernel dies when the kernel lets it.
fn abandon(mut child: Child) {
    // Either it is dead already, or it will be.
    _ = child.kill();
    std::thread::spawn(move || child.wait());
}

fn text(receiver: Option<&Receiver<Vec<u8>>>) -> String {
    // A grandchild may keep the pipe open: do not wait for it long.
    let bytes = receiver.and_then(|pipe| pipe.recv_timeout(Duration::from_secs(1)).ok());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;
