use std::sync::Arc;

use serde_json::{Value, json};

use crate::components::AGENT;
use crate::plan::tests::World as Sim;
use crate::rollout::Step;
use crate::validate::tests::object;

fn spec(policy: &str) -> Value {
    json!({"mode": "Enforce", "deletionPolicy": policy})
}

/// A deleted cluster with a node whose agent has reported.
fn deleted(policy: &str) -> Sim {
    let mut sim = Sim::new(&[("c", spec(policy))], &["n1"]);
    sim.report("c", "Ready");
    sim.delete("c");
    sim
}

fn report(sim: &mut Sim, plan: Option<Value>) {
    let generation = sim.snapshot.gpu_nodes["n1"].metadata.generation;
    let mut status = json!({"phase": "Ready", "observedGeneration": generation});
    if let Some(plan) = plan {
        status["plan"] = plan;
    }
    sim.status("n1", &status);
}

/// The agent has not seen the last write yet.
fn bump(sim: &mut Sim) {
    let object = Arc::make_mut(sim.snapshot.gpu_nodes.get_mut("n1").unwrap());
    object.metadata.generation = Some(7);
}

#[test]
fn restore_asks_the_agent_for_the_way_back_and_waits_for_it() {
    let mut sim = deleted("Restore");
    let changes = sim.plan("c");
    assert!(changes.gpu_nodes[0].spec.restore && changes.forget.is_empty());
    assert!(changes.prune.iter().all(|one| one.name != AGENT));
    sim.apply(&changes);
    bump(&mut sim);
    let waiting = sim.plan("c");
    assert!(waiting.forget.is_empty() && !waiting.holds_nothing());
    report(&mut sim, None);
    sim.settle("c");
    assert!(sim.snapshot.gpu_nodes.is_empty() && sim.sets().is_empty());
    assert!(sim.plan("c").holds_nothing());
}

#[test]
fn costly_parts_of_the_way_back_wait_for_taint_pods_and_grant() {
    let mut sim = deleted("Restore");
    let changes = sim.plan("c");
    sim.apply(&changes);
    let hash = sim.snapshot.gpu_nodes["n1"].spec.install_hash.clone();
    let back = json!({"hash": "p", "installHash": hash, "cost": "Traffic", "actions": []});
    report(&mut sim, Some(back));
    assert_eq!(sim.plan("c").maintenance[0].steps, [Step::Taint]);
    sim.snapshot.nodes.get_mut("n1").unwrap().tainted = true;
    let steps = sim.plan("c").maintenance.remove(0).steps;
    assert!(matches!(&steps[..], [Step::Grant(grant)] if grant.granted_plan == "p"));
    assert!(sim.plan("c").forget.is_empty());
}

#[test]
fn retain_lets_go_at_once_also_of_a_cluster_that_is_being_restored() {
    let mut sim = deleted("Retain");
    assert_eq!(sim.plan("c").forget, ["n1"]);
    sim = deleted("Restore");
    let changes = sim.plan("c");
    sim.apply(&changes);
    sim.snapshot.clusters = vec![object("c", &spec("Retain"))];
    sim.delete("c");
    assert_eq!(sim.plan("c").forget, ["n1"]);
}

#[test]
fn a_node_whose_agent_never_reported_has_nothing_to_restore() {
    let mut sim = Sim::new(&[("c", spec("Restore"))], &["n1"]);
    sim.settle("c");
    sim.delete("c");
    assert_eq!(sim.plan("c").forget, ["n1"]);
}

#[test]
fn a_cluster_that_takes_the_node_over_ends_the_way_back() {
    let mut sim = deleted("Restore");
    let changes = sim.plan("c");
    sim.apply(&changes);
    sim.snapshot.clusters.push(object("d", &spec("Retain")));
    let changes = sim.plan("d");
    assert!(!changes.gpu_nodes[0].spec.restore && changes.gpu_nodes[0].spec.cluster == "d");
    assert!(sim.plan("c").holds_nothing());
}

#[test]
fn a_paused_cluster_restores_nothing_costly() {
    let mut sim = Sim::new(
        &[(
            "c",
            json!({"mode": "Enforce", "paused": true, "deletionPolicy": "Restore"}),
        )],
        &["n1"],
    );
    sim.report("c", "Ready");
    sim.delete("c");
    let changes = sim.plan("c");
    assert!(changes.gpu_nodes[0].spec.paused);
    sim.apply(&changes);
    let hash = sim.snapshot.gpu_nodes["n1"].spec.install_hash.clone();
    report(
        &mut sim,
        Some(json!({"hash": "p", "installHash": hash, "cost": "Traffic", "actions": []})),
    );
    assert_eq!(sim.plan("c").maintenance[0].steps, []);
}
