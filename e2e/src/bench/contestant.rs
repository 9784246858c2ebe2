//! A device plugin that is measured: any program that is given by its command, started for one simulated node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;

use crate::cmd;

/// How long a plugin may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// A program and its arguments, with placeholders for what differs from node to node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contestant {
    /// Name in the tables.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The resource that is measured; the first that the plugin registers where none is given.
    pub resource: Option<String>,
}

/// What stands for the placeholders.
#[derive(Clone, Debug)]
pub struct Places {
    /// `{dir}`: the kubelet's device-plugins directory, of this contestant alone.
    pub dir: PathBuf,
    /// `{root}`: holds the simulated machine's `sys` and `proc`.
    pub root: PathBuf,
    /// `{node-file}`: what the agent would have written.
    pub node_file: PathBuf,
}

impl Contestant {
    /// A program of ours.
    #[must_use]
    pub fn new(name: &str, program: &Path, arguments: &[&str], resource: &str) -> Self {
        let program = program.to_string_lossy().into_owned();
        let arguments = arguments.iter().map(|&argument| argument.to_owned());
        Self {
            name: name.to_owned(),
            command: std::iter::once(program).chain(arguments).collect(),
            resource: Some(resource.to_owned()),
        }
    }

    fn filled(&self, places: &Places) -> Vec<String> {
        let known = [
            ("{dir}", &places.dir),
            ("{root}", &places.root),
            ("{node-file}", &places.node_file),
        ];
        let fill = |word: &String| {
            known.iter().fold(word.clone(), |word, (name, path)| {
                word.replace(name, &path.to_string_lossy())
            })
        };
        self.command.iter().map(fill).collect()
    }

    /// Starts it, its output in a file beside the kubelet's directory.
    pub fn start(&self, places: &Places) -> Result<Running> {
        let words = self.filled(places);
        let (program, arguments) = words.split_first().context("a plugin has a program")?;
        self.spawn(&mut cmd::command(program, arguments), places)
    }

    /// Starts it below another program, which gets its command line as arguments.
    pub fn start_below(&self, mut above: Command, places: &Places) -> Result<Running> {
        self.spawn(above.args(self.filled(places)), places)
    }

    fn spawn(&self, command: &mut Command, places: &Places) -> Result<Running> {
        let log = places.dir.with_extension("log");
        let begun = Instant::now();
        let child = cmd::spawn_logged(command, &log).with_context(|| self.name.clone())?;
        Ok(Running { begun, child })
    }

    /// Size of its program.
    pub fn binary_bytes(&self) -> Result<u64> {
        let program = self.command.first().context("a plugin has a program")?;
        let about = fs::metadata(program).with_context(|| format!("look at {program}"))?;
        Ok(about.len())
    }
}

impl FromStr for Contestant {
    type Err = anyhow::Error;

    /// `NAME=PROGRAM ARGUMENT…`, split at white space: what needs more goes into a script.
    fn from_str(text: &str) -> Result<Self> {
        let (name, command) = text
            .split_once('=')
            .context("write NAME=PROGRAM, with arguments after it")?;
        let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if name.is_empty() || command.is_empty() {
            bail!("write NAME=PROGRAM, with arguments after it");
        }
        Ok(Self {
            name: name.to_owned(),
            command,
            resource: None,
        })
    }
}

/// A contestant that runs; dropped, it is killed.
pub struct Running {
    begun: Instant,
    child: Child,
}

/// What a process has in memory, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// All that is resident.
    pub rss: u64,
    /// Of it its own: heap and stacks.
    pub anon: u64,
    /// Of it pages of files, which the kernel may take back.
    pub file: u64,
}

impl Running {
    /// The moment before it was started.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// What it has in memory now.
    pub fn memory(&self) -> Result<Memory> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        memory(&status).with_context(|| format!("understand {path}"))
    }

    /// Ends it as Kubernetes does, while the kubelet goes on.
    pub async fn stop(mut self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        kill(pid, Signal::SIGTERM).context("end a plugin")?;
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() {
            if asked.elapsed() > PATIENCE {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn memory(status: &str) -> Option<Memory> {
    Some(Memory {
        rss: kib(status, "VmRSS:")?,
        anon: kib(status, "RssAnon:")?,
        file: kib(status, "RssFile:")?,
    })
}

/// A line of `/proc/PID/status` in KiB (proc(5)).
#[must_use]
pub fn kib(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests;
