//! Which files a program reads, as the kernel resolved them, and how long bare reads of them take.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use super::stats::{Samples, Summary};
use crate::{cmd, packages};

/// Rounds of bare reads.
const ROUNDS: usize = 200;

/// A program under strace(1), which shows each descriptor with its path.
pub struct Watched {
    log: PathBuf,
    /// Only what lies below it counts.
    below: PathBuf,
}

/// Files, and how long it takes to read each of them once.
#[derive(Clone, Debug, Serialize)]
pub struct Reads {
    /// Number of files and folders.
    pub files: usize,
    /// Time of one round.
    pub time: Option<Summary>,
}

impl Watched {
    /// What opens files below a folder is to be seen; the log is a file beside it.
    pub fn new(below: &Path) -> Result<Self> {
        packages::ensure_all(&[("/usr/bin/strace", "strace")])?;
        let below = below.to_owned();
        let log = below.with_extension("strace");
        let _ = std::fs::remove_file(&log);
        Ok(Self { log, below })
    }

    /// The program to put before the watched one and its arguments; the watched one takes its process (`-D`), so that it
    /// is ended like any other.
    #[must_use]
    pub fn strace(&self) -> Command {
        let arguments = [
            "-D",
            "-f",
            "-qq",
            "-y",
            "-e",
            "trace=open,openat,openat2,pread64",
            "-o",
        ];
        let mut command = cmd::command("strace", arguments);
        command.arg(&self.log);
        command
    }

    /// How much there is in the log.
    pub fn mark(&self) -> Result<usize> {
        Ok(self.text()?.len())
    }

    /// Files and folders that were opened between two marks.
    pub fn between(&self, from: usize, to: usize) -> Result<BTreeSet<PathBuf>> {
        Ok(opened(
            self.text()?.get(from..to).unwrap_or_default(),
            &self.below,
        ))
    }

    fn text(&self) -> Result<String> {
        std::fs::read_to_string(&self.log).context("read what strace saw")
    }
}

/// What was opened only to be named (`O_PATH`) was not read; a file that was open already may have been.
fn opened(log: &str, below: &Path) -> BTreeSet<PathBuf> {
    let read = log.lines().filter(|line| !line.contains("O_PATH"));
    let paths = read.filter_map(|line| {
        let (call, result) = line.rsplit_once(" = ")?;
        let shown = if call.contains(" pread64(") {
            call
        } else {
            result
        };
        let (_, path) = shown.split_once('<')?;
        path.split_once('>').map(|(path, _)| PathBuf::from(path))
    });
    paths
        .filter(|path| path.starts_with(below) && path != below)
        .collect()
}

/// Reads them again and again.
pub fn reads(opened: &BTreeSet<PathBuf>) -> Result<Reads> {
    let (folders, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        opened.iter().partition(|path| path.is_dir());
    let mut times = Samples::default();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for path in &files {
            std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
        }
        for path in &folders {
            let entries = std::fs::read_dir(path);
            let entries = entries.with_context(|| format!("list {}", path.display()))?;
            let _ = entries.count();
        }
        times.push(begun.elapsed());
    }
    Ok(Reads {
        files: opened.len(),
        time: times.summary(),
    })
}

/// The list that the floor program reads: folders end with a slash.
#[must_use]
pub fn list(opened: &BTreeSet<PathBuf>) -> String {
    let line = |path: &PathBuf| {
        let end = if path.is_dir() { "/" } else { "" };
        format!("{}{end}\n", path.display())
    };
    opened.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
