//! The dependency arrows of ARCHITECTURE.md, held over `cargo metadata`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that fails should say where"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crate, and which of our crates it may use outside tests.
const ARROWS: &[(&str, &[&str])] = &[
    ("topology", &[]),
    ("crds", &[]),
    ("host", &["topology"]),
    ("operator", &["crds", "topology"]),
    ("node-agent", &["crds", "host", "topology"]),
    ("device-plugin", &["host", "topology"]),
];

fn packages() -> BTreeMap<String, Vec<Value>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            (
                package["name"].as_str().unwrap().to_owned(),
                package["dependencies"].as_array().unwrap().clone(),
            )
        })
        .collect()
}

/// Names of a crate's dependencies outside tests.
fn shipped(dependencies: &[Value]) -> BTreeSet<&str> {
    dependencies
        .iter()
        .filter(|dependency| dependency["kind"].is_null())
        .filter_map(|dependency| dependency["name"].as_str())
        .collect()
}

#[test]
fn our_crates_depend_on_each_other_as_designed() {
    let packages = packages();
    for (name, allowed) in ARROWS {
        let ours: BTreeSet<_> = shipped(&packages[*name])
            .into_iter()
            .filter(|other| packages.contains_key(*other))
            .collect();
        assert!(
            ours.is_subset(&allowed.iter().copied().collect()),
            "{name} uses {ours:?}, allowed are {allowed:?}"
        );
    }
}

#[test]
fn hardware_libraries_enter_by_host_alone() {
    for (name, dependencies) in packages() {
        let libraries: Vec<_> = shipped(&dependencies)
            .into_iter()
            .filter(|other| ["rdma-sys", "nvml-wrapper"].contains(other))
            .collect();
        assert!(
            libraries.is_empty() || name == "host",
            "{name} uses {libraries:?}"
        );
    }
}

#[test]
fn the_device_plugin_knows_no_kubernetes_api() {
    let packages = packages();
    let used = shipped(&packages["device-plugin"]);
    assert!(
        !used.contains("kube") && !used.contains("crds") && !used.contains("k8s-openapi"),
        "{used:?}"
    );
}
