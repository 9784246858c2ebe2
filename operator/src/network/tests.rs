use std::sync::Arc;

use serde_json::{Value, json};

use crate::plan::Changes;
use crate::plan::tests::World;
use crate::rails::tests::nic;
use crate::validate::tests::object;

fn spec(cidr: &str) -> Value {
    json!({"mode": "Enforce", "fabric": {"addresses": [{"rail": 0, "cidr": cidr}]}})
}

fn pool(name: &str, cidr: &str) -> Value {
    let mut spec = spec(cidr);
    spec["nodeSelector"] = json!({"matchLabels": {"pool": name}});
    spec
}

fn report(in_use: &[&str]) -> Value {
    json!({"observedGeneration": 1, "phase": "Ready", "nics": [nic(1), nic(2)],
           "summary": {"gpus": 8, "nics": 2, "admittedPairs": 2}, "addressesInUse": in_use})
}

/// Two clusters with one range, and nodes of each.
fn two() -> World {
    let mut world = World::new(
        &[
            ("a", pool("a", "10.0.0.0/24")),
            ("b", pool("b", "10.0.0.0/24")),
        ],
        &["a1", "a2", "b1", "b2"],
    );
    for node in ["a1", "a2", "b1", "b2"] {
        world.set_label(node, "pool", &node[..1]);
    }
    for cluster in ["a", "b"] {
        world.settle(cluster);
    }
    world
}

fn address(changes: &Changes, node: &str) -> Option<String> {
    let network = changes.network.as_ref()?;
    let given = network.given.get(node)?;
    given.addresses.first().map(|one| one.address.clone())
}

fn now(world: &World, node: &str) -> Vec<String> {
    let given = &world.snapshot.gpu_nodes[node].spec.config.addresses;
    given.iter().map(|one| one.address.clone()).collect()
}

#[test]
fn nodes_get_rails_and_addresses_once_their_agents_have_looked() {
    let mut world = two();
    assert_eq!(now(&world, "a1"), [""; 0]);
    for node in ["a1", "a2", "b1", "b2"] {
        world.status(node, &report(&[]));
    }
    world.settle("a");
    world.settle("b");
    let rails: Vec<_> = world.snapshot.gpu_nodes["a1"]
        .spec
        .config
        .rails
        .iter()
        .map(|one| (one.pci.as_str(), one.rail))
        .collect();
    assert_eq!(rails, [("0000:01:00.0", 0), ("0000:02:00.0", 1)]);
    let all: Vec<_> = ["a1", "a2", "b1", "b2"]
        .iter()
        .flat_map(|node| now(&world, node))
        .collect();
    assert_eq!(
        all,
        ["10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24", "10.0.0.4/24"]
    );
}

#[test]
fn addresses_of_nodes_and_those_in_use_are_nobodys() {
    let mut world = two();
    let own = &mut world.snapshot.nodes.get_mut("b2").unwrap().addresses;
    own.insert("10.0.0.1".parse().unwrap());
    world.status("a1", &report(&[]));
    world.status("b1", &report(&["10.0.0.2", "10.9.0.1"]));
    world.settle("a");
    assert_eq!(now(&world, "a1"), ["10.0.0.3/24"]);
}

/// What an agent reports as `ADDRESS_CONFLICT` of its own address it lists as in use too.
#[test]
fn an_address_that_is_in_conflict_is_given_up_for_another() {
    let mut world = two();
    world.status("a1", &report(&[]));
    world.settle("a");
    assert_eq!(now(&world, "a1"), ["10.0.0.1/24"]);
    world.status("a1", &report(&["10.0.0.1"]));
    world.settle("a");
    assert_eq!(now(&world, "a1"), ["10.0.0.2/24"]);
}

#[test]
fn what_is_written_and_not_yet_shown_is_given_to_nobody_else() {
    let mut world = two();
    let ledger = crate::ledger::Ledger::default();
    for node in ["a1", "a2", "b1", "b2"] {
        world.status(node, &report(&[]));
    }
    let first = world.plan("a");
    ledger.note(Some("uid-a".to_owned()), &first);
    assert_eq!(address(&first, "a2").as_deref(), Some("10.0.0.2/24"));
    let lagging = world.snapshot.clone();
    world.snapshot = ledger.overlay(lagging.clone());
    let other = world.plan("b");
    assert_eq!(address(&other, "b1").as_deref(), Some("10.0.0.3/24"));
    ledger.note(Some("uid-b".to_owned()), &other);
    world.snapshot = ledger.overlay(lagging);
    // A node that sorts first is new meanwhile, and the cache shows nothing of what was written.
    let mut facts = world.snapshot.nodes["a1"].clone();
    facts.uid = "uid-a0".to_owned();
    world.snapshot.nodes.insert("a0".to_owned(), facts);
    let mut newcomer = (*world.snapshot.gpu_nodes["a1"]).clone();
    newcomer.metadata.name = Some("a0".to_owned());
    newcomer.spec.node_uid = "uid-a0".to_owned();
    world
        .snapshot
        .gpu_nodes
        .insert("a0".to_owned(), Arc::new(newcomer));
    let again = world.plan("a");
    assert_eq!(address(&again, "a0").as_deref(), Some("10.0.0.5/24"));
    assert_eq!(address(&again, "a1"), address(&first, "a1"));
    assert_eq!(address(&again, "a2"), address(&first, "a2"));
}

#[test]
fn an_agent_that_has_not_seen_the_range_gets_no_address_and_keeps_what_it_has() {
    let mut world = two();
    world.status("a1", &report(&[]));
    world.settle("a");
    world.status(
        "a2",
        &json!({"observedGeneration": 0, "phase": "Ready", "nics": [nic(1)]}),
    );
    world.settle("a");
    assert_eq!(now(&world, "a2"), [""; 0]);
    world.status("a1", &json!({"observedGeneration": 0, "phase": "Pending"}));
    world.settle("a");
    assert_eq!(now(&world, "a1"), ["10.0.0.1/24"], "absence is no evidence");
}

#[test]
fn two_nics_on_one_rail_get_no_address_and_the_node_says_so() {
    let mut world = two();
    let mut rules = pool("a", "10.0.0.0/24");
    rules["fabric"]["rails"] = json!([{"match": {"netdev": "eth*"}, "rail": 0}]);
    world.snapshot.clusters[0] = object("a", &rules);
    world.settle("a");
    world.status("a1", &report(&[]));
    world.settle("a");
    assert_eq!(now(&world, "a1"), [""; 0]);
    let network = world.plan("a").network.unwrap();
    assert_eq!(network.problems["a1"].reason.as_str(), "RailShared");
}

#[test]
fn another_range_gives_other_addresses_and_no_range_none() {
    let mut world = two();
    world.status("a1", &report(&[]));
    world.settle("a");
    world.snapshot.clusters[0] = object("a", &pool("a", "10.7.0.0/24"));
    world.settle("a");
    assert_eq!(now(&world, "a1"), ["10.7.0.1/24"]);
    let none = json!({"nodeSelector": {"matchLabels": {"pool": "a"}}});
    world.snapshot.clusters[0] = object("a", &none);
    world.settle("a");
    assert_eq!(now(&world, "a1"), [""; 0]);
}

#[test]
fn a_node_that_moves_to_another_cluster_frees_what_it_had() {
    let mut world = two();
    world.snapshot.clusters[1] = object("b", &pool("b", "10.7.0.0/24"));
    world.settle("b");
    world.status("a1", &report(&[]));
    world.settle("a");
    world.set_label("a1", "pool", "b");
    world.settle("b");
    assert_eq!(now(&world, "a1"), ["10.7.0.1/24"]);
    world.status("a2", &report(&[]));
    world.settle("a");
    assert_eq!(now(&world, "a2"), ["10.0.0.1/24"]);
}

#[test]
fn a_namesake_of_a_node_begins_anew() {
    let mut world = two();
    world.status("a1", &report(&[]));
    world.settle("a");
    world.snapshot.nodes.get_mut("a1").unwrap().uid = "uid-new".to_owned();
    let changes = world.plan("a");
    assert_eq!(changes.gpu_nodes[0].spec.node_uid, "uid-new");
    assert_eq!(address(&changes, "a1"), None);
}
