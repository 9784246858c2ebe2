//! Granted maintenance: taken in, run one action at a time, interrupted in every way, ended.

mod reboots;

use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use crds::node::{Maintenance, MaintenanceStatus};
use node_agent::cycle::Turn;
use node_agent::desired::Desired;
use node_agent::settings::{JOURNAL_FILE, LOCK_FILE, MAINTENANCE_FILE};
use serde_json::{Value, json};

use crate::ask::{MACHINE, finding_ids, nothing_asked, reason, turn};
use crate::common::Node;

const MODULES: usize = 10;

/// In place of chroot: rmmod takes the module from where the kernel shows it, systemctl notes that it was asked. Where the
/// file `kill` is, whoever called does not live to see it.
const CHROOT: &str = r#"#!/bin/sh
case "$2" in
rmmod)
    grep -v "^$4 " "$1/proc/modules" > "$1/tmp/modules"
    cat "$1/tmp/modules" > "$1/proc/modules"
    echo "$4" >> "$1/tmp/unloaded" ;;
systemctl)
    echo "$3" >> "$1/tmp/asked" ;;
esac
if [ -e "$1/tmp/kill" ]; then kill -9 $PPID; fi
exit 0
"#;

fn module(number: usize) -> String {
    format!("extra_{number:02}")
}

fn boot_id(node: &Node) -> String {
    node.read("/proc/sys/kernel/random/boot_id")
        .trim()
        .to_owned()
}

/// A node on which this agent has loaded ten modules in this boot, which it now takes back.
fn node() -> Node {
    let mut node = Node::new(MACHINE);
    node.put("/tmp/unloaded", "");
    node.put("/usr/lib/gpurdma-test/chroot", CHROOT);
    let chroot = node.settings.root.join("/usr/lib/gpurdma-test/chroot");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&chroot, mode).unwrap();
    node.settings.chroot = chroot;
    let line = |number| format!("{} 4096 0 - Live 0x0\n", module(number));
    let modules: String = (0..MODULES).map(line).collect();
    node.put("/proc/modules", &(node.read("/proc/modules") + &modules));
    journal(&node, 0..MODULES);
    node
}

fn journal(node: &Node, numbers: std::ops::Range<usize>) {
    let boot = boot_id(node);
    let loaded = |number| {
        let entry = json!({"bootId": boot, "at": "2026-03-01T11:00:00Z", "asserted": true});
        (module(number), entry)
    };
    let modules: serde_json::Map<String, Value> = numbers.map(loaded).collect();
    let journal = json!({"modules": modules, "openibConf": {}});
    node.put(JOURNAL_FILE, &journal.to_string());
}

fn back() -> Desired {
    Desired {
        restore: true,
        ..nothing_asked()
    }
}

/// The same with a grant for the plan that the agent has published.
async fn granted(node: &Node) -> Desired {
    let plan = turn(node, &back()).await.status.plan.unwrap();
    let grant = Maintenance {
        granted_plan: plan.hash,
        install_hash: plan.install_hash,
        attempt: 1,
    };
    Desired {
        grant: Some(grant),
        ..back()
    }
}

fn unloaded(node: &Node) -> Vec<String> {
    let text = node.read("/tmp/unloaded");
    text.lines().map(str::to_owned).collect()
}

fn all() -> Vec<String> {
    (0..MODULES).map(module).collect()
}

fn maintenance(turn: &Turn) -> &MaintenanceStatus {
    turn.status.maintenance.as_ref().unwrap()
}

#[tokio::test]
async fn nothing_costly_runs_without_a_grant_and_one_action_a_turn_with_it() {
    let node = node();
    let asks = granted(&node).await;
    assert_eq!(unloaded(&node), [""; 0]);
    for done in 1..=MODULES {
        let turn = turn(&node, &asks).await;
        assert_eq!(unloaded(&node).len(), done);
        assert!(turn.more && maintenance(&turn).started_at.is_some());
        assert_eq!(maintenance(&turn).completed, done == MODULES);
    }
    assert_eq!(unloaded(&node), all());
    let last = turn(&node, &asks).await;
    assert!(maintenance(&last).completed && !last.more && last.status.plan.is_none());
    assert_eq!(reason(&last.status, "Ready"), ("True", "AsSpecified"));
    let over = turn(&node, &back()).await;
    assert_eq!(over.status.maintenance, None);
    assert!(!node.settings.root.join(MAINTENANCE_FILE).exists());
}

#[tokio::test]
async fn a_grant_for_another_plan_is_not_taken_in() {
    let node = node();
    let mut asks = granted(&node).await;
    asks.grant.as_mut().unwrap().granted_plan = "0".repeat(64);
    let turn = turn(&node, &asks).await;
    assert_eq!((turn.status.maintenance, unloaded(&node).len()), (None, 0));
}

#[tokio::test]
async fn a_grant_that_is_taken_back_or_for_another_hash_counts_before_the_next_action() {
    let node = node();
    let asks = granted(&node).await;
    for _ in 0..3 {
        turn(&node, &asks).await;
    }
    let other = Desired {
        install_hash: "1".repeat(64),
        ..asks.clone()
    };
    for revoked in [other, back()] {
        let turn = turn(&node, &revoked).await;
        assert_eq!(turn.status.maintenance, None);
        assert_eq!(unloaded(&node).len(), 3);
    }
    let paused = Desired {
        paused: true,
        ..granted(&node).await
    };
    turn(&node, &paused).await;
    assert_eq!(unloaded(&node).len(), 3);
}

#[tokio::test]
async fn what_the_plan_gains_later_is_not_granted() {
    let node = node();
    journal(&node, 0..4);
    let asks = granted(&node).await;
    turn(&node, &asks).await;
    let journaled = json!({"modules": {
        module(2): {"bootId": boot_id(&node), "at": "2026-03-01T11:00:00Z", "asserted": true},
        module(7): {"bootId": boot_id(&node), "at": "2026-03-01T11:00:00Z", "asserted": true},
    }, "openibConf": {}});
    node.put(JOURNAL_FILE, &journaled.to_string());
    for _ in 0..3 {
        turn(&node, &asks).await;
    }
    assert_eq!(unloaded(&node), [module(0), module(2)]);
    let last = turn(&node, &asks).await;
    assert!(
        maintenance(&last).completed,
        "the rest asks for a grant of its own"
    );
    assert_eq!(last.status.plan.unwrap().actions.len(), 1);
}

#[tokio::test]
async fn users_of_rdma_are_named_and_waited_for() {
    let node = node();
    let asks = granted(&node).await;
    node.put("/proc/4242/comm", "all_reduce_perf\n");
    node.put("/proc/4242/cgroup", "0::/user.slice\n");
    let descriptors = node.settings.root.join("/proc/4242/fd");
    std::fs::create_dir_all(&descriptors).unwrap();
    symlink("/dev/infiniband/uverbs0", descriptors.join("7")).unwrap();
    let blocked = turn(&node, &asks).await;
    let message = &maintenance(&blocked).message;
    assert!(
        message.contains("all_reduce_perf") && message.contains("4242"),
        "{message}"
    );
    assert!(maintenance(&blocked).started_at.is_none() && unloaded(&node).is_empty());
    node.remove_dir("/proc/4242");
    let free = turn(&node, &asks).await;
    assert_eq!(unloaded(&node).len(), 1);
    assert!(!maintenance(&free).message.contains("all_reduce_perf"));
}

#[tokio::test]
async fn a_plan_survives_a_reboot_between_two_actions() {
    let node = node();
    let asks = granted(&node).await;
    for _ in 0..4 {
        turn(&node, &asks).await;
    }
    node.put(
        "/proc/sys/kernel/random/boot_id",
        "1fffffff-0000-4000-8000-000000000002\n",
    );
    journal(&node, 4..MODULES);
    node.restart_agent();
    for _ in 4..MODULES {
        turn(&node, &asks).await;
    }
    assert_eq!(unloaded(&node), all());
    assert!(maintenance(&turn(&node, &asks).await).completed);
}

#[tokio::test]
async fn a_disk_that_cannot_be_written_stops_before_the_action_and_goes_on_after() {
    let node = node();
    let asks = granted(&node).await;
    turn(&node, &asks).await;
    let name = format!("/var/lib/gpurdma/.attempts.json.tmp-{}", std::process::id());
    std::fs::create_dir(node.settings.root.join(&name)).unwrap();
    let full = turn(&node, &asks).await;
    assert_eq!(unloaded(&node).len(), 1);
    assert!(finding_ids(&full.status).contains("HOST_UNREADABLE"));
    std::fs::remove_dir(node.settings.root.join(&name)).unwrap();
    for _ in 1..MODULES {
        turn(&node, &asks).await;
    }
    assert_eq!(unloaded(&node), all());
}

#[tokio::test]
async fn two_never_act_at_once() {
    let node = node();
    let asks = granted(&node).await;
    turn(&node, &asks).await;
    let now = k8s_openapi::jiff::Timestamp::now();
    let lock = node_agent::lock::take(&node.settings.root, "site-tool", now).unwrap();
    let held = turn(&node, &asks).await;
    assert_eq!(unloaded(&node).len(), 1);
    assert!(finding_ids(&held.status).contains("HOST_LOCKED"));
    let refused = apply(&node, &asks);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && text.contains("site-tool"),
        "{text}"
    );
    drop(lock);
    turn(&node, &asks).await;
    assert_eq!(unloaded(&node).len(), 2);
    assert!(node.read(LOCK_FILE).starts_with("node-agent run, pid"));
}

/// `node-agent apply` on the object as the operator writes it.
fn apply(node: &Node, asks: &Desired) -> Output {
    let object = json!({
        "apiVersion": "gpurdma.dev/v1alpha1", "kind": "GpuRdmaNode", "metadata": {"name": "n", "generation": 1},
        "spec": {"mode": "Enforce", "restore": true, "installHash": asks.install_hash, "maintenance": asks.grant},
    });
    node.put("/tmp/node.json", &object.to_string());
    Command::new(env!("CARGO_BIN_EXE_node-agent"))
        .arg("--root")
        .arg(node.settings.root.path())
        .arg("--chroot")
        .arg(&node.settings.chroot)
        .args(["apply", "--config"])
        .arg(node.settings.root.join("/tmp/node.json"))
        .output()
        .unwrap()
}

/// Ten actions, and the agent is killed in every one of them: the next one always goes on from the disk.
#[tokio::test]
async fn an_agent_that_is_killed_in_every_action_converges() {
    let node = node();
    let asks = granted(&node).await;
    node.put("/tmp/kill", "");
    for done in 1..=MODULES {
        let killed = apply(&node, &asks);
        assert_eq!(killed.status.code(), None, "killed by a signal: {killed:?}");
        assert_eq!(unloaded(&node).len(), done);
    }
    assert_eq!(unloaded(&node), all(), "each once");
    node.restart_agent();
    let after = turn(&node, &asks).await;
    assert!(maintenance(&after).completed && after.status.plan.is_none());
}
