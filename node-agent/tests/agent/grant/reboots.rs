//! Reboots that a grant asks for: once, when everything else is done, judged by what the next boot shows.

use node_agent::action::NETNS_FILE;
use node_agent::desired::Desired;
use node_agent::settings::{ATTEMPTS_FILE, JOURNAL_FILE};
use serde_json::json;

use super::{boot_id, granted, journal, maintenance, module, node, unloaded};
use crate::ask::turn;
use crate::common::Node;

/// Only the last module is left, and the attempt on it was prepared in this boot, as an action that needs a reboot is.
async fn prepared(node: &Node) -> Desired {
    journal(node, 0..1);
    let asks = granted(node).await;
    let key = format!("UnloadModule/{}/unloaded", module(0));
    let count =
        json!({"attempts": 1, "lastAt": "2026-03-01T11:00:00Z", "preparedIn": boot_id(node)});
    let attempts = json!({"installHash": asks.install_hash, "actions": {key: count}});
    node.put(ATTEMPTS_FILE, &attempts.to_string());
    node.restart_agent();
    asks
}

fn asked(node: &Node) -> usize {
    let path = node.settings.root.join("/tmp/asked");
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[tokio::test]
async fn the_host_is_rebooted_once_when_everything_else_is_done() {
    let node = node();
    let asks = prepared(&node).await;
    for _ in 0..3 {
        let turn = turn(&node, &asks).await;
        assert!(!maintenance(&turn).completed);
        node.restart_agent();
    }
    assert_eq!(asked(&node), 1);
    node.put(
        "/proc/sys/kernel/random/boot_id",
        "1fffffff-0000-4000-8000-000000000002\n",
    );
    node.restart_agent();
    let booted = turn(&node, &asks).await;
    assert!(
        maintenance(&booted).completed,
        "the new boot does not have the module"
    );
    assert_eq!((asked(&node), unloaded(&node).len()), (1, 0));
}

/// O54: a card that a reboot does not reset. The grant ends after the first reboot, as failed.
#[tokio::test]
async fn a_reboot_that_does_not_bring_it_fails_the_grant_and_is_not_made_again() {
    let node = node();
    let asks = prepared(&node).await;
    turn(&node, &asks).await;
    for boot in 2..5 {
        let id = format!("1fffffff-0000-4000-8000-00000000000{boot}\n");
        node.put("/proc/sys/kernel/random/boot_id", &id);
        // The module is there again.
        journal(&node, 0..1);
        node.restart_agent();
        for _ in 0..3 {
            let stuck = turn(&node, &asks).await;
            let action = &stuck.status.plan.as_ref().unwrap().actions[0];
            assert!(
                action.exhausted && action.message.contains("the host has rebooted"),
                "{action:?}"
            );
            assert_eq!(action.attempts, 1);
            assert!(!maintenance(&stuck).completed && unloaded(&node).is_empty());
        }
    }
    assert_eq!(asked(&node), 1, "and never again");
}

/// The option is taken back, and the initial RAM disk has it still: the second boot shows it, the third does not.
#[tokio::test]
async fn a_way_back_is_done_when_a_boot_shows_it() {
    let node = node();
    let set = |mode: Option<bool>| json!({"tuning": {"rdmaNetns": {"shared": mode}}});
    let entry = json!({"done": set(Some(false)), "undo": set(None), "bootId": boot_id(&node),
        "at": "2026-03-01T11:00:00Z", "asserted": true});
    let journal =
        json!({"modules": {}, "openibConf": {}, "changed": {"SetRdmaNetns/ib_core": entry}});
    node.put(JOURNAL_FILE, &journal.to_string());
    node.put(NETNS_FILE, "options ib_core netns_mode=0\n");
    let mode = "/sys/module/ib_core/parameters/netns_mode";
    node.put(mode, "N\n");
    let asks = granted(&node).await;
    turn(&node, &asks).await;
    turn(&node, &asks).await;
    assert_eq!(asked(&node), 1);
    assert!(!node.settings.root.join(NETNS_FILE).exists());
    let boot = |number| {
        let id = format!("1fffffff-0000-4000-8000-00000000000{number}\n");
        node.put("/proc/sys/kernel/random/boot_id", &id);
        node.restart_agent();
    };
    boot(2);
    let stuck = turn(&node, &asks).await;
    let action = &stuck.status.plan.as_ref().unwrap().actions[0];
    assert!(
        action.exhausted && !maintenance(&stuck).completed,
        "{action:?}"
    );
    node.put(mode, "Y\n");
    boot(3);
    let done = turn(&node, &asks).await;
    assert!(done.status.plan.is_none() && maintenance(&done).completed);
    assert!(!node.read(JOURNAL_FILE).contains("SetRdmaNetns"));
    assert_eq!(asked(&node), 1);
}

#[tokio::test]
async fn a_host_that_does_not_go_down_is_a_failed_attempt() {
    let node = node();
    let asks = prepared(&node).await;
    turn(&node, &asks).await;
    node.pass(300);
    turn(&node, &asks).await;
    assert_eq!(asked(&node), 1);
    node.pass(301);
    let late = turn(&node, &asks).await;
    let action = &late.status.plan.as_ref().unwrap().actions[0];
    assert!(action.message.contains("did not go down"), "{action:?}");
    assert_eq!(asked(&node), 1);
}
