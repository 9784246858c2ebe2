//! One golden per scenario, as a person would read the plan: `planner/snapshots/`.

use std::collections::BTreeSet;

use crds::cluster::Driver;
use crds::node::NodeConfig;
use host::facts::driver::Openibd;
use host::facts::{Facts, Sourced};
use topology::fact::Fact;

use super::*;
use crate::journal::SetKey;
use crate::modules::{ModuleName, ModuleState, Modules};
use crate::render;

const BOOT: &str = "boot-1";

fn name(text: &str) -> ModuleName {
    ModuleName::new(text).unwrap()
}

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn time(text: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(text.parse().unwrap())
}

fn live(names: &[&str]) -> Fact<Modules> {
    Fact::Known(
        names
            .iter()
            .map(|text| (name(text), ModuleState::Live))
            .collect(),
    )
}

fn found<T>(value: T) -> Sourced<T> {
    Sourced {
        source: "the test".to_owned(),
        fact: Fact::Known(value),
    }
}

/// A host with OFED, its openib.conf and its modules.
fn host() -> HostState {
    let text = "# openibd\nONBOOT=yes\nUMAD_LOAD=no\nSET_IPOIB_CM=\"auto\"\n";
    HostState {
        boot_id: BOOT.to_owned(),
        modules: live(&["mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs"]),
        built_in: BTreeSet::new(),
        node_addresses: BTreeSet::new(),
        facts: Facts {
            openib_conf: found(text.to_owned()),
            openibd: Openibd {
                directory: true,
                program: true,
                invocation: Fact::Known("run-1".to_owned()),
            },
            ofed_version: found("24.10-1.1.4".to_owned()),
            ..Facts::default()
        },
        ..HostState::default()
    }
}

/// The host with other facts.
fn with(change: impl FnOnce(&mut Facts)) -> HostState {
    let mut host = host();
    change(&mut host.facts);
    host
}

fn asks(modules: &[&str], keys: &[(&str, &str)]) -> Desired {
    let driver = Driver {
        modules: modules.iter().map(|&text| text.to_owned()).collect(),
        openib_conf: keys
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        ..Driver::default()
    };
    Desired::of_config(NodeConfig {
        driver,
        ..NodeConfig::default()
    })
    .unwrap()
}

fn set(before: Option<&str>, after: &str) -> SetKey {
    SetKey {
        before: before.map(str::to_owned),
        after: after.to_owned(),
        boot_id: BOOT.to_owned(),
        at: time("2026-03-01T11:00:00Z"),
        openibd: Some("run-1".to_owned()),
        asserted: true,
    }
}

fn remembers_key(key: &str, set: SetKey) -> Memory {
    let mut memory = Memory::default();
    memory.journal.key_set(key, set);
    memory
}

fn remembers_module(text: &str, boot: &str) -> Memory {
    let mut memory = Memory::default();
    memory
        .journal
        .module_loaded(&name(text), boot, time("2026-03-01T11:00:00Z"));
    memory
}

fn failed(change: &Change, times: u32, last: &str) -> Memory {
    let mut memory = Memory::default();
    for _ in 0..times {
        memory.attempts.begin(change, last.parse().unwrap());
    }
    memory.attempts.end(
        change,
        Some("modprobe ib_umad: exit status: 1: module not found"),
    );
    memory
}

fn golden(scenario: &str, plan: &Plan) {
    let text = format!(
        "{}\n{}",
        render::actions(plan),
        render::findings(&plan.findings)
    );
    insta::assert_snapshot!(scenario, text);
}

fn check(scenario: &str, state: &HostState, desired: &Desired, memory: Memory) {
    let world = World {
        state,
        machine: &Machine::default(),
        desired,
        memory: &memory.current(desired),
        now: now(),
    };
    golden(scenario, &plan(&world));
}

#[test]
fn modules() {
    let umad = asks(&["ib-umad"], &[]);
    check("nothing_asked", &host(), &asks(&[], &[]), Memory::default());
    check("module_absent", &host(), &umad, Memory::default());
    check(
        "two_modules_in_order",
        &host(),
        &asks(&["rdma_ucm", "ib_umad"], &[]),
        Memory::default(),
    );
    let loaded = HostState {
        modules: live(&["ib_umad"]),
        ..host()
    };
    check("module_loaded_already", &loaded, &umad, Memory::default());
    let built_in = HostState {
        built_in: [name("ib_umad")].into(),
        ..host()
    };
    check("module_built_in", &built_in, &umad, Memory::default());
    let loading = HostState {
        modules: Fact::Known([(name("ib_umad"), ModuleState::Loading)].into()),
        ..host()
    };
    check("module_loading", &loading, &umad, Memory::default());
    let unreadable = HostState {
        modules: Fact::Unreadable("read /proc/modules: EIO".to_owned()),
        ..host()
    };
    check("modules_unreadable", &unreadable, &umad, Memory::default());
}

#[test]
fn memory_of_modules() {
    let umad = asks(&["ib_umad"], &[]);
    let same_hash = |memory: Memory| Memory {
        attempts: Attempts {
            install_hash: umad.install_hash.clone(),
            ..memory.attempts
        },
        ..memory
    };
    check(
        "module_unloaded_by_someone",
        &host(),
        &umad,
        same_hash(remembers_module("ib_umad", BOOT)),
    );
    check(
        "module_of_an_earlier_boot",
        &host(),
        &umad,
        same_hash(remembers_module("ib_umad", "boot-0")),
    );
    let load = Change::LoadModule(name("ib_umad"));
    check(
        "one_failure_waits",
        &host(),
        &umad,
        same_hash(failed(&load, 1, "2026-03-01T11:59:50Z")),
    );
    check(
        "one_failure_long_ago",
        &host(),
        &umad,
        same_hash(failed(&load, 1, "2026-03-01T11:00:00Z")),
    );
    check(
        "budget_used_up",
        &host(),
        &umad,
        same_hash(failed(&load, 3, "2026-03-01T11:00:00Z")),
    );
    check(
        "new_hash_tries_again",
        &host(),
        &umad,
        failed(&load, 3, "2026-03-01T11:00:00Z"),
    );
    let reset = Desired {
        reset_attempts: Some("1".to_owned()),
        ..umad.clone()
    };
    check(
        "annotation_tries_again",
        &host(),
        &reset,
        same_hash(remembers_module("ib_umad", BOOT)),
    );
}

#[test]
fn openib_conf() {
    let yes = asks(&[], &[("UMAD_LOAD", "yes")]);
    check("key_differs", &host(), &yes, Memory::default());
    check(
        "key_as_asked",
        &host(),
        &asks(&[], &[("SET_IPOIB_CM", "auto")]),
        Memory::default(),
    );
    check(
        "key_not_set",
        &host(),
        &asks(&[], &[("RDS_LOAD", "no")]),
        Memory::default(),
    );
    let twice =
        with(|facts| facts.openib_conf = found("UMAD_LOAD=yes\nA=1\nUMAD_LOAD=no\n".to_owned()));
    check("key_assigned_twice", &twice, &yes, Memory::default());
    let shell =
        with(|facts| facts.openib_conf = found("UMAD_LOAD=no\n. /etc/site.conf\n".to_owned()));
    check("file_is_shell", &shell, &yes, Memory::default());
    let computed = with(|facts| facts.openib_conf = found("NODE_DESC=$(hostname -s)\n".to_owned()));
    check(
        "value_is_computed",
        &computed,
        &asks(&[], &[("NODE_DESC", "n7")]),
        Memory::default(),
    );
    let absent = with(|facts| facts.openib_conf.fact = Fact::Absent);
    check("file_absent_with_ofed", &absent, &yes, Memory::default());
    let inbox = with(|facts| {
        facts.openib_conf.fact = Fact::Absent;
        facts.openibd = Openibd::default();
        facts.ofed_version.fact = Fact::Absent;
    });
    check("file_absent_inbox", &inbox, &yes, Memory::default());
    let no_reader = with(|facts| facts.openibd.program = false);
    check("nobody_reads_the_file", &no_reader, &yes, Memory::default());
    let unreadable = with(|facts| {
        facts.openib_conf.fact =
            Fact::Unreadable("read /etc/infiniband/openib.conf: EIO".to_owned());
    });
    check("file_unreadable", &unreadable, &yes, Memory::default());
}

#[test]
fn written_and_in_effect() {
    let asked = asks(&[], &[("UMAD_LOAD", "yes")]);
    let hash = asked.install_hash.clone();
    let ours = || {
        let mut memory = remembers_key("UMAD_LOAD", set(Some("no"), "yes"));
        memory.attempts.install_hash.clone_from(&hash);
        memory
    };
    let written = with(|facts| facts.openib_conf = found("UMAD_LOAD=yes\n".to_owned()));
    check("written_not_in_effect", &written, &asked, ours());
    let restarted = with(|facts| {
        facts.openib_conf = found("UMAD_LOAD=yes\n".to_owned());
        facts.openibd.invocation = Fact::Known("run-2".to_owned());
    });
    check("openibd_restarted", &restarted, &asked, ours());
    let rebooted = HostState {
        boot_id: "boot-2".to_owned(),
        ..written.clone()
    };
    check("rebooted", &rebooted, &asked, ours());
    check("someone_wrote_it_back", &host(), &asked, ours());
}

#[test]
fn the_way_back() {
    let mut memory = remembers_key("UMAD_LOAD", set(Some("no"), "yes"));
    memory.journal.key_set("RDS_LOAD", set(None, "no"));
    memory.journal.key_set("ONBOOT", set(Some("no"), "no"));
    memory
        .journal
        .module_loaded(&name("ib_umad"), BOOT, time("2026-03-01T11:00:00Z"));
    memory
        .journal
        .module_loaded(&name("rdma_ucm"), "boot-0", time("2026-02-01T11:00:00Z"));
    let state = HostState {
        modules: live(&["ib_umad", "rdma_ucm"]),
        ..with(|facts| {
            facts.openib_conf = found("ONBOOT=yes\nUMAD_LOAD=yes\nRDS_LOAD=no\n".to_owned());
        })
    };
    golden("restore", &restore(&state, &memory, now()));
    golden(
        "restore_nothing",
        &restore(&state, &Memory::default(), now()),
    );
}

#[test]
fn the_first_old_value_is_what_a_restore_goes_back_to() {
    let mut memory = remembers_key("UMAD_LOAD", set(Some("no"), "yes"));
    memory
        .journal
        .key_set("UMAD_LOAD", set(Some("yes"), "maybe"));
    let kept = &memory.journal.openib_conf["UMAD_LOAD"];
    assert_eq!(
        (kept.before.as_deref(), kept.after.as_str()),
        (Some("no"), "maybe")
    );
}

#[test]
fn only_what_is_allowed_runs() {
    let mut memory = Memory::default();
    memory
        .journal
        .module_loaded(&name("ib_umad"), BOOT, time("2026-03-01T11:00:00Z"));
    let state = HostState {
        modules: live(&["ib_umad"]),
        ..host()
    };
    let plan = restore(&state, &memory, now());
    assert_eq!(plan.actions.len(), 1);
    assert_eq!(plan.runnable(Cost::None).count(), 0);
    assert_eq!(plan.runnable(Cost::Traffic).count(), 1);
    let status = plan.status("hash").unwrap().unwrap();
    assert_eq!((status.cost, status.hash.len()), (Cost::Traffic, 64));
}

#[test]
fn what_another_took_back_is_not_set_again() {
    let change = Change::SetOpenibConf {
        key: "UMAD_LOAD".to_owned(),
        value: Some("yes".to_owned()),
    };
    let undo = Change::SetOpenibConf {
        key: "UMAD_LOAD".to_owned(),
        value: None,
    };
    let mut memory = Memory::default();
    let at = time("2026-03-01T11:00:00Z");
    memory.journal.changing(&change, &undo, BOOT, at.clone());
    let (state, desired) = (host(), Desired::default());
    let ensured = |memory: &Memory| {
        let world = World {
            state: &state,
            machine: &Machine::default(),
            desired: &desired,
            memory,
            now: now(),
        };
        let mut plan = Plan::default();
        plan.ensure(&world, change.clone(), undo.clone(), "it is not set");
        (plan.actions.len(), plan.findings.len())
    };
    assert_eq!(ensured(&memory), (0, 1));
    memory.journal.release();
    assert_eq!(ensured(&memory), (1, 0));
    memory.journal.changing(&undo, &undo, BOOT, at);
    assert_eq!(memory.journal.changed.len(), 0, "back where it was");
}
