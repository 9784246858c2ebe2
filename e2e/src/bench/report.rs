//! Tables for people and one JSON file for programs. Pure, but for the file.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use serde::Serialize;

use super::calls::OfSize;
use super::discovery::Discovery;
use super::goals::{Goal, allocate_over, over, reads_p50};
use super::opened::Reads;
use super::plugin::{Figures, OnMachine};
use super::soak::Soak;
use super::stats::Summary;

/// A figure, what it is here, and its goal.
pub type Row = [String; 3];

/// A [`Row`].
#[must_use]
pub fn row(figure: &str, here: String, goal: &str) -> Row {
    [figure.to_owned(), here, goal.to_owned()]
}

/// KiB as MiB.
#[must_use]
pub fn mib(kib: u64) -> String {
    format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024)
}

/// Everything that was measured of device plugins and of discovery.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// Processor cores.
    pub cores: usize,
    /// `uname -r`.
    pub kernel: String,
    /// Size of each contestant's program in bytes, by name.
    pub binaries: Vec<(String, u64)>,
    /// Plugins on machines.
    pub machines: Vec<OnMachine>,
    /// The product's memory over many calls.
    pub soak: Option<Soak>,
    /// The agent's discovery.
    pub discovery: Vec<Discovery>,
    /// Goals, and whether they are met.
    pub goals: Vec<Goal>,
}

impl Measured {
    /// Nothing yet, on this machine.
    pub fn of_this_machine() -> Result<Self> {
        let cores = std::thread::available_parallelism().context("count the cores")?;
        let kernel = nix::sys::utsname::uname().context("ask for the kernel")?;
        Ok(Self {
            cores: cores.get(),
            kernel: kernel.release().to_string_lossy().into_owned(),
            ..Self::default()
        })
    }
}

/// Writes the JSON file.
pub fn write(measured: &Measured, path: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(measured).context("write JSON")?;
    let folder = path.parent().context("the file has a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    std::fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))
}

/// All tables.
#[must_use]
pub fn render(measured: &Measured) -> String {
    let mut text = format!("{} cores, Linux {}\n", measured.cores, measured.kernel);
    for machine in &measured.machines {
        let _ = write!(text, "\n{}\n{}\n", machine.shape.title(), figures(machine));
        let _ = write!(
            text,
            "\nby number of devices (p50 / p99 in ms)\n{}\n",
            sizes(machine)
        );
    }
    if !measured.discovery.is_empty() {
        let _ = write!(
            text,
            "\nnode-agent facts\n{}\n",
            discovery(&measured.discovery)
        );
    }
    if !measured.goals.is_empty() {
        let _ = write!(text, "\ngoals\n{}\n", goals(&measured.goals));
    }
    text
}

/// A table of [`Row`]s.
#[must_use]
pub fn simple(rows: Vec<Row>) -> Table {
    let header = ["figure", "here", "goal"].map(str::to_owned);
    table(header, rows.into_iter().map(Vec::from))
}

/// A table in Markdown.
fn table(
    header: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    table
}

/// A time of a contestant.
type Time = fn(&Figures) -> Option<Summary>;
/// How many times the floor's it is, and the bare reads that are part of the floor.
type Held = fn(&Figures, &Figures) -> (Option<f64>, Option<Reads>);
/// What else there is of it.
type Shown = fn(&Figures) -> String;

/// The times of a table, and what they are called.
const TIMES: [(&str, Time, Held); 6] = [
    (
        "exec → Register, ms",
        |f| f.exec_to_register,
        |own, floor| {
            let reads = own.reads_at_start.clone();
            let empty = floor.exec_to_register;
            (
                over(own.exec_to_register, empty, reads_p50(reads.as_ref())),
                reads,
            )
        },
    ),
    (
        "dial → first list, ms",
        |f| f.dial_to_list,
        |own, floor| (over(own.dial_to_list, floor.dial_to_list, 0.0), None),
    ),
    (
        "Allocate(1), ms",
        |f| f.allocate.first().and_then(|calls| calls.time),
        |own, floor| (allocate_over(own, floor, 1), None),
    ),
    (
        "Allocate(all), ms",
        |f| f.allocate.last().and_then(|calls| calls.time),
        |own, floor| {
            let reads = own.reads_at_allocate.clone();
            (allocate_over(own, floor, own.allocate.len()), reads)
        },
    ),
    (
        "preferred, slowest size, ms",
        |f| slowest(&f.preferred),
        |own, floor| {
            let (own, floor) = (slowest(&own.preferred), slowest(&floor.preferred));
            (over(own, floor, 0.0), None)
        },
    ),
    (
        "kubelet.sock → Register, ms",
        |f| f.register_again,
        |own, floor| (over(own.register_again, floor.register_again, 0.0), None),
    ),
];

fn figures(machine: &OnMachine) -> Table {
    let names = machine.figures.iter().map(|figures| figures.name.clone());
    let header = std::iter::once("figure".to_owned()).chain(names);
    let header = header.chain(["bare reads", "times the floor"].map(str::to_owned));
    let counted: [(&str, Shown); 4] = [
        ("devices", |f| f.devices.to_string()),
        ("RSS, idle", |f| mib(f.idle.rss)),
        ("RSS, after the calls", |f| mib(f.after_calls.rss)),
        ("of it its own", |f| mib(f.after_calls.anon)),
    ];
    let compared = machine.figures.first().zip(machine.figures.get(1));
    let timed = TIMES.map(|(what, time, held)| {
        let (times, reads) = compared.map_or((None, None), |(own, floor)| held(own, floor));
        let further = [
            shown(reads.as_ref()),
            times.map_or_else(String::new, number),
        ];
        line(machine, what, |f| both(time(f)), further)
    });
    let counted =
        counted.map(|(what, show)| line(machine, what, show, [String::new(), String::new()]));
    table(header, timed.into_iter().chain(counted))
}

fn line(
    machine: &OnMachine,
    what: &str,
    show: impl Fn(&Figures) -> String,
    further: [String; 2],
) -> Vec<String> {
    let cells = machine.figures.iter().map(show);
    std::iter::once(what.to_owned())
        .chain(cells)
        .chain(further)
        .collect()
}

fn sizes(machine: &OnMachine) -> Table {
    let columns = machine.figures.iter().flat_map(|figures| {
        ["Allocate", "preferred"].map(|call| format!("{call}: {}", figures.name))
    });
    let header = std::iter::once("devices".to_owned()).chain(columns);
    let most = machine
        .figures
        .iter()
        .map(|figures| figures.allocate.len())
        .max();
    let time = |calls: &[OfSize], size| {
        both(
            calls
                .iter()
                .find(|calls| calls.size == size)
                .and_then(|calls| calls.time),
        )
    };
    let rows = (1..=most.unwrap_or(0)).map(|size| {
        let cells = machine.figures.iter();
        let cells = cells.flat_map(|figures| {
            [
                time(&figures.allocate, size),
                time(&figures.preferred, size),
            ]
        });
        std::iter::once(size.to_string()).chain(cells).collect()
    });
    table(header, rows)
}

fn discovery(all: &[Discovery]) -> Table {
    let header = [
        "machine",
        "facts, ms",
        "files",
        "bare reads, ms",
        "facts / bare reads",
        "memory, highest",
    ];
    let rows = all.iter().map(|one| {
        let times = one
            .facts
            .zip(one.reads)
            .map(|(facts, reads)| facts.p50 / reads.p50);
        vec![
            one.machine.clone(),
            both(one.facts),
            one.files.to_string(),
            both(one.reads),
            times.map_or_else(String::new, |times| format!("{times:.2}")),
            mib(one.peak_kib),
        ]
    });
    table(header.map(str::to_owned), rows)
}

fn goals(goals: &[Goal]) -> Table {
    let header = ["goal", "here", "limit", "met"].map(str::to_owned);
    let rows = goals.iter().map(|goal| {
        let met = if goal.is_met() { "yes" } else { "NO" };
        vec![
            goal.what.clone(),
            number(goal.here),
            number(goal.limit),
            met.to_owned(),
        ]
    });
    table(header, rows)
}

/// Of several numbers of devices the one that takes longest.
#[must_use]
pub fn slowest(calls: &[OfSize]) -> Option<Summary> {
    let times = calls.iter().filter_map(|calls| calls.time);
    times.max_by(|a, b| a.p50.total_cmp(&b.p50))
}

fn both(time: Option<Summary>) -> String {
    time.map_or_else(
        || "–".to_owned(),
        |time| format!("{} / {}", number(time.p50), number(time.p99)),
    )
}

fn shown(reads: Option<&Reads>) -> String {
    let text = |reads: &Reads| format!("{} ({} files)", both(reads.time), reads.files);
    reads.map_or_else(String::new, text)
}

/// Three digits, as far as they tell something.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests;
