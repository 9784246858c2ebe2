//! The agent's discovery: `node-agent facts` against bare reads of the same files, whole programs both, in turns.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::opened::{self, Watched};
use super::shape::SHAPES;
use super::stats::{Samples, Summary};
use crate::{cmd, machines, progress};

/// A machine of the field.
const MACHINE: &str = "nvidia-dgx-a100";
/// What it is called.
pub(super) const OF_FIELD: &str = "DGX A100";
/// Pairs of measurements.
const ROUNDS: usize = 41;

/// One machine.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// What it is.
    pub machine: String,
    /// Time of `node-agent facts`, in milliseconds.
    pub facts: Option<Summary>,
    /// Most KiB that it had in memory.
    pub peak_kib: u64,
    /// Files and folders that it opened.
    pub files: usize,
    /// Time of a program that only reads them.
    pub reads: Option<Summary>,
}

/// A machine of the field, and the sizes with eight GPUs.
pub fn run(agent: &Path, floor: &Path, work: &Path) -> Result<Vec<Discovery>> {
    let base = work.join("node");
    let _ = fs::remove_dir_all(&base);
    let of_field = machines::load(MACHINE)?;
    of_field.write("bench", &base.join("root"))?;
    let mut all = vec![one(OF_FIELD, agent, floor, &base)?];
    for shape in SHAPES.iter().filter(|shape| shape.gpus == 8) {
        shape.write(&base)?;
        all.push(one(&shape.title(), agent, floor, &base)?);
    }
    Ok(all)
}

fn one(machine: &str, agent: &Path, floor: &Path, base: &Path) -> Result<Discovery> {
    progress::step(&format!("facts against bare reads: {machine}"), || {
        measure(machine, agent, floor, base)
    })
}

fn measure(machine: &str, agent: &Path, floor: &Path, base: &Path) -> Result<Discovery> {
    let root = base.join("root");
    let arguments = facts_of(&root);
    let watched = Watched::new(&root)?;
    cmd::run(watched.strace().arg(agent).args(&arguments))?;
    let files = watched.between(0, watched.mark()?)?;
    let list = base.join("files");
    fs::write(&list, opened::list(&files)).context("write the list of files")?;
    let (mut ours, mut reads) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(time(Command::new(agent).args(&arguments))?);
        reads.push(time(Command::new(floor).arg("read").arg(&list))?);
    }
    let mut peak = Command::new(floor);
    let peak = cmd::output(peak.arg("peak").arg(agent).args(&arguments))?;
    Ok(Discovery {
        machine: machine.to_owned(),
        facts: ours.summary(),
        peak_kib: peak.trim().parse().context("understand the peak")?,
        files: files.len(),
        reads: reads.summary(),
    })
}

/// The agent's arguments.
fn facts_of(root: &Path) -> [OsString; 5] {
    let words = ["--root", "facts", "--output", "json"].map(OsString::from);
    let [option, facts, output, json] = words;
    [option, root.into(), facts, output, json]
}

fn time(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    cmd::run(command)?;
    Ok(begun.elapsed())
}
