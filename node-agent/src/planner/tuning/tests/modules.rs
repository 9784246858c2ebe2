//! Unloading what we loaded, after what holds it.

use host::facts::Sourced;
use host::facts::kernel::Module;

use super::*;
use crate::planner::restore;

fn module(name: &str, references: u64, holders: &[&str]) -> Module {
    Module {
        name: name.to_owned(),
        size: Fact::Known(4096),
        references: Fact::Known(references),
        holders: holders.iter().map(|&holder| holder.to_owned()).collect(),
        state: "Live".to_owned(),
        version: Fact::Absent,
        source_version: Fact::Absent,
    }
}

/// What is loaded and what of it we loaded.
fn unloads(scenario: &str, loaded: Vec<Module>, ours: &[&str]) {
    let mut scene = Scene::asks(|_| {});
    for name in ours {
        let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-03-01T11:00:00Z".parse().unwrap(),
        );
        scene
            .memory
            .journal
            .module_loaded(&ModuleName::new(name).unwrap(), BOOT, at);
    }
    let mut state = scene.state();
    state.modules = crate::modules::from_facts(Fact::Known(loaded.clone()));
    state.facts.modules = Sourced {
        source: "/proc/modules".to_owned(),
        fact: Fact::Known(loaded),
    };
    golden(
        scenario,
        restore(
            &state,
            &scene.memory,
            "2026-03-01T12:00:00Z".parse().unwrap(),
        ),
    );
}

#[test]
fn modules_are_unloaded_after_what_holds_them() {
    let chain = vec![
        module("ib_ipoib", 0, &[]),
        module("ib_cm", 1, &["ib_ipoib"]),
    ];
    unloads("unload_holders_first", chain, &["ib_cm", "ib_ipoib"]);
    // O4: the holder that nobody counted is named.
    unloads(
        "unload_held_by_a_module_that_nobody_counted",
        vec![module("ib_umad", 1, &["gdrdrv"])],
        &["ib_umad"],
    );
    // O8: a storage module holds the RDMA core.
    unloads(
        "unload_held_by_storage",
        vec![module("rdma_cm", 2, &["ib_isert", "irdma"])],
        &["rdma_cm"],
    );
    unloads(
        "unload_in_use",
        vec![module("rdma_ucm", 3, &[])],
        &["rdma_ucm"],
    );
    let behind = vec![
        module("ib_ipoib", 2, &[]),
        module("ib_cm", 1, &["ib_ipoib"]),
    ];
    unloads(
        "unload_behind_one_that_is_in_use",
        behind,
        &["ib_cm", "ib_ipoib"],
    );
}
