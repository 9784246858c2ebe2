//! Runs one program with typed arguments, no shell, an empty environment but for `PATH`, and a deadline: the only place that
//! starts a process. [`answer`] serves [`crate::facts::network`], the rest the node agent. A module load can hang in the
//! kernel, so nothing here waits for ever, not even for a killed child.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
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

/// How long a question of [`answer`] may take; they take milliseconds as a rule.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// Bytes of its answer.
const ANSWER_LIMIT: u64 = 8 << 20;

/// How often a program whose file is being written is tried again, and the pause before.
const BUSY_TRIES: u32 = 40;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Names and values of environment variables.
pub type Environment<'a> = &'a [(&'a str, &'a str)];

/// Runs `program` with `arguments`.
pub fn run(
    program: &OsStr,
    arguments: &[&OsStr],
    deadline: Duration,
) -> Result<Outcome, CommandError> {
    let mut command = command(program, arguments);
    command.stdout(Stdio::null());
    finish(command, deadline, STDOUT_LIMIT).map(|(outcome, _)| outcome)
}

/// [`run`] with more of an environment, and with what the program wrote to its standard output.
pub fn ask(
    program: &OsStr,
    arguments: &[&OsStr],
    environment: Environment<'_>,
    deadline: Duration,
) -> Result<(Outcome, String), CommandError> {
    let mut command = command(program, arguments);
    command
        .envs(environment.iter().copied())
        .stdout(Stdio::piped());
    finish(command, deadline, STDOUT_LIMIT)
}

fn finish(
    mut command: Command,
    deadline: Duration,
    stdout_limit: u64,
) -> Result<(Outcome, String), CommandError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |operation| {
        let program = program.clone();
        move |source| CommandError {
            operation,
            program,
            source,
        }
    };
    let mut child = spawn(&mut command).map_err(failed("start"))?;
    let stderr = child
        .stderr
        .take()
        .map(|pipe| read_in_background(pipe, STDERR_LIMIT));
    let stdout = child
        .stdout
        .take()
        .map(|pipe| read_in_background(pipe, stdout_limit));
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

/// Why a tool gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// It could not be started or watched.
    #[error("{} `{what}`", error.operation)]
    Run {
        /// Program and arguments.
        what: String,
        /// What was tried, and the kernel's answer.
        error: CommandError,
    },
    /// It ended with an error.
    #[error("`{what}`: {status}: {stderr}")]
    Failed {
        /// Program and arguments.
        what: String,
        /// Exit status.
        status: String,
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
            Self::Run { error, .. } => format!("{self}: {}", error.source),
            _ => self.to_string(),
        }
    }
}

/// What `program` writes to its standard output.
pub(crate) fn answer(program: &str, arguments: &[&str]) -> Result<String, ProgramError> {
    let what = format!("{program} {}", arguments.join(" "));
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    let mut command = command(OsStr::new(program), &arguments);
    command.stdout(Stdio::piped());
    match finish(command, ANSWER_DEADLINE, ANSWER_LIMIT) {
        Ok((Outcome::Succeeded, text)) => Ok(text),
        Ok((Outcome::Failed { status, stderr }, _)) => Err(ProgramError::Failed {
            what,
            status,
            stderr,
        }),
        Ok((Outcome::Unknown { waited }, _)) => Err(ProgramError::Hangs {
            what,
            seconds: waited.as_secs(),
        }),
        Err(error) => Err(ProgramError::Run { what, error }),
    }
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
    let mut command = command(program, arguments);
    command
        .envs(environment.iter().copied())
        .stdout(log)
        .stderr(errors);
    let mut child = spawn(&mut command).map_err(failed)?;
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

/// A file that is open for writing is not run (`execve(2)`, `ETXTBSY`): one that was just written is for as long as a child of
/// another thread, which has every descriptor until it runs its own program, holds it.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(BUSY_PAUSE);
            }
            result => return result,
        }
    }
    command.spawn()
}

fn wait(child: &mut Child, deadline: Duration) -> std::io::Result<Option<ExitStatus>> {
    let until = Instant::now() + deadline;
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
