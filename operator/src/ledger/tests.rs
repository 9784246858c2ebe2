use serde_json::json;

use super::*;
use crate::plan::tests::World;
use crate::rails::tests::nic;

fn world() -> World {
    let spec = json!({"fabric": {"addresses": [{"rail": 0, "cidr": "10.0.0.0/24"}]}});
    let mut world = World::new(&[("c", spec)], &["n1"]);
    world.settle("c");
    world.status(
        "n1",
        &json!({"observedGeneration": 1, "phase": "Ready", "nics": [nic(1)]}),
    );
    world
}

fn noted(world: &World) -> (Ledger, Changes) {
    let (ledger, changes) = (Ledger::default(), world.plan("c"));
    ledger.note(Some("uid-c".to_owned()), &changes);
    (ledger, changes)
}

#[test]
fn what_was_noted_counts_until_it_is_shown() {
    let mut world = world();
    let (ledger, changes) = noted(&world);
    let snapshot = ledger.overlay(world.snapshot.clone());
    assert_eq!(snapshot.given("n1").addresses[0].address, "10.0.0.1/24");
    assert_eq!(world.snapshot.given("n1"), Given::default());
    world.apply(&changes);
    let snapshot = ledger.overlay(world.snapshot.clone());
    assert_eq!(snapshot.pending.given, BTreeMap::new());
    assert_eq!(snapshot.given("n1").addresses[0].address, "10.0.0.1/24");
}

#[test]
fn layouts_are_those_that_were_decided_last_whatever_the_status_says() {
    let world = world();
    let (ledger, changes) = noted(&world);
    let layouts = changes.network.unwrap().layouts;
    assert_eq!(layouts.len(), 1);
    assert_eq!(world.snapshot.layouts("c"), []);
    assert_eq!(ledger.overlay(world.snapshot.clone()).layouts("c"), layouts);
    ledger.forget(Some("uid-c"));
    assert_eq!(ledger.overlay(world.snapshot.clone()).layouts("c"), []);
}

#[test]
fn nodes_that_are_gone_are_forgotten_and_an_empty_cache_is_no_evidence() {
    let mut world = world();
    let (ledger, _) = noted(&world);
    let nodes = std::mem::take(&mut world.snapshot.nodes);
    assert_eq!(
        ledger.overlay(world.snapshot.clone()).pending.given.len(),
        1
    );
    world.snapshot.nodes = nodes;
    world.snapshot.nodes.get_mut("n1").unwrap().uid = "another".to_owned();
    assert_eq!(
        ledger.overlay(world.snapshot.clone()).pending.given.len(),
        0
    );
}

#[test]
fn a_node_that_is_released_is_forgotten() {
    let world = world();
    let (ledger, _) = noted(&world);
    let leaving = Changes {
        forget: vec!["n1".to_owned()],
        ..Changes::default()
    };
    ledger.note(None, &leaving);
    assert_eq!(ledger.overlay(world.snapshot).pending.given.len(), 0);
}
