//! Reads the machine files.

#![expect(
    clippy::disallowed_methods,
    reason = "tests read their data; the crate itself reads nothing"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use topology::distance::Distance;
use topology::file::{MachineFile, parse};
use topology::machine::Machine;
use topology::pairing::{Pairing, pair};
use topology::policy::ResourcePolicy;

pub mod rules;

/// Malformed on purpose: its notes say so.
pub const REFUSED: &str = "supermicro-x9drg-hf-m2075-edited";

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// Every machine file by its name.
pub fn texts() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder("machines"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let yaml = entries.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    yaml.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

/// Every machine that loads.
pub fn files() -> Vec<MachineFile> {
    texts()
        .into_iter()
        .filter(|(name, _)| name != REFUSED)
        .map(|(name, text)| load(&name, &text))
        .collect()
}

fn load(name: &str, text: &str) -> MachineFile {
    let file = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(file.name, name);
    file
}

/// One machine.
pub fn file(name: &str) -> MachineFile {
    let path = folder("machines").join(format!("{name}.yaml"));
    load(name, &std::fs::read_to_string(path).unwrap())
}

/// A published topology file of this repository.
pub fn xml(name: &str) -> String {
    std::fs::read_to_string(folder("xml").join(name)).unwrap()
}

/// A published file, of this repository or laid beside it; `None`, said on the way, where it is not there.
pub fn published(name: &str) -> Option<String> {
    let beside = folder("../../../shared/machines/xml");
    let laid = std::env::var_os("GPURDMA_TOPOLOGY_FILES").map_or(beside, PathBuf::from);
    let paths = [folder("xml").join(name), laid.join(name)];
    let text = paths
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok());
    if text.is_none() {
        println!("not laid: {}", paths[1].display());
    }
    text
}

/// Names of the machines that have a golden.
pub fn goldens() -> std::collections::BTreeSet<String> {
    let entries = std::fs::read_dir(folder("snapshots/machines")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| name.strip_suffix(".snap").map(str::to_owned))
        .collect()
}

/// A page of the documentation; `UPDATE_DOCS=1` writes it anew.
pub fn docs(name: &str, wanted: &str) -> String {
    let path = folder("../../docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    }
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The machine of a machine file.
pub fn machine(name: &str) -> Machine {
    file(name).machine
}

/// The default policy with another limit.
pub fn within(max_distance: Distance) -> ResourcePolicy {
    ResourcePolicy {
        max_distance,
        ..ResourcePolicy::default()
    }
}

/// The pairs of a machine.
pub fn paired(machine: &Machine, policy: &ResourcePolicy) -> Pairing {
    pair(machine, &machine.paths(), policy)
}
