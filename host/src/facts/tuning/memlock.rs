//! How much memory containers may lock: registering memory for RDMA locks it, Kubernetes has no field for the limit, so
//! containers inherit that of their runtime's daemon. Read from `/proc/<pid>/limits` (`proc(5)`) of the unit's processes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use crate::parse::checked;
use crate::root::Root;

/// Units of runtimes and the name of their daemon's process.
const RUNTIMES: &[(&str, &str)] = &[
    ("containerd", "containerd"),
    ("crio", "crio"),
    ("docker", "dockerd"),
    ("k3s", "containerd"),
    ("k3s-agent", "containerd"),
    ("rke2-agent", "containerd"),
    ("rke2-server", "containerd"),
];
/// Where systemd's units have their control group, version 2 and version 1.
const GROUPS: &[&str] = &[
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
];
/// Where units and their drop-ins stand.
const UNITS: &[&str] = &[
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A runtime's limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Runtime {
    /// The daemon's process.
    pub pid: u32,
    /// What containers inherit.
    pub limit: Fact<Limit>,
    /// `LimitMEMLOCK` lines of the unit and its drop-ins: what the next start brings.
    pub unit_files: Vec<UnitLimit>,
}

/// A soft limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// None.
    Unlimited,
    /// Bytes.
    Bytes(u64),
}

/// A `LimitMEMLOCK` line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitLimit {
    /// The file.
    pub file: String,
    /// The value.
    pub value: String,
}

/// Runtimes that run, by unit.
pub(crate) fn read(root: &Root) -> BTreeMap<String, Runtime> {
    let running = |(unit, daemon): &(&str, &str)| {
        let pid = pid(root, unit, daemon)?;
        let runtime = Runtime {
            pid,
            limit: limit(root, pid),
            unit_files: unit_files(root, unit),
        };
        Some(((*unit).to_owned(), runtime))
    };
    RUNTIMES.iter().filter_map(running).collect()
}

/// The first of the unit's processes that bears the daemon's name.
fn pid(root: &Root, unit: &str, daemon: &str) -> Option<u32> {
    let read = |group: &&str| {
        root.text(&format!("{group}/{unit}.service/cgroup.procs"))
            .ok()
    };
    let pids = GROUPS.iter().find_map(read)?;
    let mut pids = pids
        .lines()
        .filter_map(|line| line.trim().parse::<u32>().ok());
    pids.find(|pid| {
        root.text(&format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name == daemon)
    })
}

fn limit(root: &Root, pid: u32) -> Fact<Limit> {
    let path = format!("/proc/{pid}/limits");
    checked(root.read(&path), &path, "list of limits", parse)
}

/// `Max locked memory         8388608              8388608              bytes`.
fn parse(text: &str) -> Option<Limit> {
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(Limit::Unlimited),
        bytes => bytes.parse().ok().map(Limit::Bytes),
    }
}

fn unit_files(root: &Root, unit: &str) -> Vec<UnitLimit> {
    let mut files = Vec::new();
    for directory in UNITS {
        files.push(format!("{directory}/{unit}.service"));
        let drop_ins = format!("{directory}/{unit}.service.d");
        let names = root.entries(&drop_ins).known().cloned().unwrap_or_default();
        files.extend(names.iter().map(|name| format!("{drop_ins}/{name}")));
    }
    let mut limits: Vec<UnitLimit> = files.iter().flat_map(|file| in_file(root, file)).collect();
    limits.sort_by(|a, b| a.file.cmp(&b.file));
    limits
}

fn in_file(root: &Root, file: &str) -> Vec<UnitLimit> {
    let text = root.text(file).unwrap_or_default();
    let value = |line: &str| {
        let value = line.trim().strip_prefix("LimitMEMLOCK=")?;
        Some(UnitLimit {
            file: file.to_owned(),
            value: value.trim().to_owned(),
        })
    };
    text.lines().filter_map(value).collect()
}
