use serde_json::{Value, json};

use super::*;
use crate::assign::assign;
use crate::plan::tests::World;
use crate::validate::validate;

fn built(world: &World, name: &str) -> Built {
    built_after(world, name, None)
}

fn built_after(world: &World, name: &str, failure: Option<&str>) -> Built {
    let validated = validate(&world.snapshot.clusters);
    let assignments = assign(&validated, &world.snapshot.nodes, &world.snapshot.present());
    let changes = world.plan(name);
    let cluster = world
        .snapshot
        .clusters
        .iter()
        .find(|object| object.name_any() == name)
        .unwrap();
    let inputs = Inputs {
        cluster,
        snapshot: &world.snapshot,
        validated: &validated,
        assignments: &assignments,
        maintenance: &changes.maintenance,
        takeover: &changes.takeover,
        network: changes.network.as_ref(),
        failure,
    };
    build(inputs, Timestamp::from_second(1_800_000_000).unwrap())
}

fn condition(built: &Built, kind: &str) -> (String, String, String) {
    let found = built
        .status
        .conditions
        .iter()
        .find(|condition| condition.type_ == kind)
        .unwrap();
    (
        found.status.clone(),
        found.reason.clone(),
        found.message.clone(),
    )
}

fn verdict(built: &Built, kind: &str) -> String {
    let (status, reason, _) = condition(built, kind);
    format!("{status} {reason}")
}

fn report(phase: &str) -> Value {
    json!({"observedGeneration": 1, "phase": phase, "summary": {"gpus": 8, "nics": 8, "admittedPairs": 8}})
}

fn settled(spec: &Value, nodes: &[&str]) -> World {
    let mut world = World::new(&[("c", spec.clone())], nodes);
    world.settle("c");
    world
}

#[test]
fn zero_nodes_say_which_selector_and_what_to_do() {
    let world = World::new(
        &[(
            "c",
            json!({"nodeSelector": {"matchLabels": {"pool": "gpu"}}}),
        )],
        &["n1"],
    );
    let (status, reason, message) = condition(&built(&world, "c"), "Ready");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "NoMatchingNodes")
    );
    assert!(
        message.contains("kubectl get nodes -l 'pool=gpu'"),
        "{message}"
    );
}

#[test]
fn ready_follows_mode_and_phases() {
    for (mode, phase, expected) in [
        ("Observe", "Observed", "True ObserveOnly"),
        ("Plan", "Planned", "True PlanOnly"),
        ("Enforce", "Ready", "True NodesReady"),
        ("Enforce", "Observed", "False NodesNotReady"),
        ("Enforce", "Degraded", "False NodesDegraded"),
        ("Enforce", "NotApplicable", "False NoApplicableNodes"),
        ("Enforce", "Pending", "False AgentPending"),
    ] {
        let mut world = settled(&json!({"mode": mode}), &["n1"]);
        world.status("n1", &report(phase));
        assert_eq!(
            verdict(&built(&world, "c"), "Ready"),
            expected,
            "{mode} {phase}"
        );
    }
}

#[test]
fn an_agent_that_never_reported_is_named_with_the_way_to_its_pod() {
    let built = built(&settled(&json!({}), &["n1"]), "c");
    assert_eq!(verdict(&built, "Ready"), "False AgentPending");
    assert_eq!(built.status.nodes[0].reason, "AgentPending");
    assert!(built.status.nodes[0].message.contains("spec.nodeName=n1"));
}

#[test]
fn a_report_on_an_older_generation_is_not_ready() {
    let mut world = settled(&json!({"mode": "Enforce"}), &["n1"]);
    let mut old = report("Ready");
    old["observedGeneration"] = json!(0);
    world.status("n1", &old);
    assert_eq!(verdict(&built(&world, "c"), "Ready"), "False NodesNotReady");
}

#[test]
fn counts_leave_out_what_is_not_applicable() {
    let mut world = settled(&json!({"mode": "Enforce"}), &["n1", "n2", "n3"]);
    world.status("n1", &report("Ready"));
    world.status("n2", &report("NotApplicable"));
    world.status("n3", &report("Degraded"));
    let status = built(&world, "c").status;
    assert_eq!(
        (status.matched, status.not_applicable, status.ready),
        (3, 1, 1)
    );
    assert_eq!(
        status
            .nodes
            .iter()
            .map(|row| row.name.as_str())
            .collect::<Vec<_>>(),
        ["n3"]
    );
}

#[test]
fn a_node_without_an_address_needs_a_person_and_the_layout_is_shown() {
    let nic = crate::rails::tests::nic(1);
    let spec =
        json!({"mode": "Enforce", "fabric": {"addresses": [{"rail": 0, "cidr": "10.0.0.1/32"}]}});
    let mut world = settled(&spec, &["n1", "n2"]);
    for node in ["n1", "n2"] {
        let mut status = report("Ready");
        status["nics"] = json!([nic]);
        world.status(node, &status);
    }
    world.settle("c");
    let built = built(&world, "c");
    assert_eq!(verdict(&built, "Degraded"), "True NodesDegraded");
    let [row] = built.status.nodes.as_slice() else {
        panic!("{:?}", built.status.nodes)
    };
    assert_eq!(
        (row.name.as_str(), row.reason.as_str()),
        ("n2", "AddressesExhausted")
    );
    assert!(
        row.message
            .contains("10.0.0.1/32 has 1 addresses, 2 nodes ask"),
        "{}",
        row.message
    );
    assert_eq!(built.status.rail_layouts[0].slots.len(), 1);
}

#[test]
fn layouts_that_were_not_looked_at_stay() {
    let mut world = settled(&json!({}), &["n1"]);
    let layouts = vec![RailLayout {
        hash: "h".to_owned(),
        ..RailLayout::default()
    }];
    let cluster = std::sync::Arc::make_mut(&mut world.snapshot.clusters[0]);
    cluster.spec.upgrade.wait_timeout = Some("soon".to_owned());
    cluster.status = Some(GpuRdmaClusterStatus {
        rail_layouts: layouts.clone(),
        ..GpuRdmaClusterStatus::default()
    });
    assert_eq!(built(&world, "c").status.rail_layouts, layouts);
}

#[test]
fn absurd_counts_stop_at_the_largest_number() {
    let mut world = settled(&json!({"mode": "Enforce"}), &["n1", "n2"]);
    for node in ["n1", "n2"] {
        let mut status = report("Ready");
        status["summary"]["admittedPairs"] = json!(u32::MAX);
        world.status(node, &status);
    }
    assert_eq!(built(&world, "c").status.pairs, u32::MAX);
}

#[test]
fn unsupported_fields_are_named_and_keep_the_cluster_from_ready() {
    let container =
        json!({"repository": "r", "image": "i", "version": "1", "precompiled": "Require"});
    let driver = json!({"source": "Container", "container": container});
    let mut world = settled(&json!({"mode": "Enforce", "driver": driver}), &["n1"]);
    world.status("n1", &report("Ready"));
    let built = built(&world, "c");
    assert_eq!(verdict(&built, "NotYetSupported"), "True NotYetSupported");
    let (status, _, message) = condition(&built, "Ready");
    assert!(
        status == "False" && message.contains("driver.container.precompiled=Require"),
        "{message}"
    );
}

#[test]
fn equals_both_say_conflict_and_precedence_says_none() {
    let mut world = World::new(&[("a", json!({})), ("b", json!({}))], &["n1"]);
    world.settle("a");
    assert_eq!(verdict(&built(&world, "a"), "Conflict"), "True Conflict");
    let b = built(&world, "b");
    assert_eq!(verdict(&b, "Conflict"), "True Conflict");
    assert_eq!(verdict(&b, "Ready"), "False Conflict");
    assert_eq!((b.status.matched, b.status.conflicting), (1, 1));
    let mut ranked = World::new(&[("a", json!({})), ("b", json!({"priority": 1}))], &["n1"]);
    ranked.settle("b");
    assert_eq!(
        verdict(&built(&ranked, "a"), "Conflict"),
        "False NoConflict"
    );
}

#[test]
fn a_specification_that_makes_no_sense_says_so() {
    let world = World::new(
        &[("c", json!({"driver": {"source": "Container"}}))],
        &["n1"],
    );
    assert_eq!(verdict(&built(&world, "c"), "Ready"), "False InvalidSpec");
}

#[test]
fn waiting_names_the_pods() {
    let mut world = settled(&json!({"mode": "Enforce"}), &["n1"]);
    let hash = world.snapshot.gpu_nodes["n1"].spec.install_hash.clone();
    let mut status = report("Waiting");
    status["plan"] = json!({"hash": "p", "installHash": hash, "cost": "Reboot", "actions": []});
    world.status("n1", &status);
    let pod = crate::facts::PodFacts {
        namespace: "ml".into(),
        name: "train-0".into(),
        node: "n1".into(),
        resources: ["rdma/gpudirect".to_owned()].into(),
        plugin: false,
        driver: None,
        stays: None,
    };
    world.snapshot.pods.insert("n1".into(), vec![pod]);
    let built = built(&world, "c");
    assert_eq!(verdict(&built, "Progressing"), "True WaitingForWorkloads");
    assert!(built.status.nodes[0].message.contains("ml/train-0"));
}

#[test]
fn rows_end_at_a_hundred() {
    let names: Vec<_> = (0..150).map(|index| format!("n{index:03}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let status = built(&settled(&json!({}), &names), "c").status;
    assert_eq!((status.matched, status.nodes.len()), (150, 100));
}

/// A limit of the status as the CRD has it.
fn limit(pointer: &str) -> usize {
    let crd = serde_json::to_value(&crds::crds()[0]).unwrap();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let found = crd.pointer(&format!("{status}{pointer}"));
    usize::try_from(found.unwrap().as_u64().unwrap()).unwrap()
}

#[test]
fn the_longest_texts_fit_the_crd() {
    let mut world = settled(&json!({"mode": "Enforce"}), &["n1"]);
    let mut status = report("Degraded");
    status["conditions"] = json!([{
        "type": "Ready", "status": "False", "reason": "R".repeat(5000), "message": "é".repeat(5000),
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    world.status("n1", &status);
    let failure = "x".repeat(5000);
    let status = built_after(&world, "c", Some(&failure)).status;
    let row = &status.nodes[0];
    let of_row = |field| limit(&format!("/nodes/items/properties/{field}/maxLength"));
    assert_eq!(row.reason.len(), of_row("reason"));
    assert_eq!(row.message.len(), of_row("message"));
    let longest = status.conditions.iter().map(|one| one.message.len()).max();
    assert_eq!(
        longest,
        Some(limit("/conditions/items/properties/message/maxLength"))
    );
    assert_eq!(MOST_ROWS, limit("/nodes/maxItems"));
}

#[test]
fn a_whole_status() {
    let mut world = settled(&json!({"mode": "Enforce"}), &["n1", "n2"]);
    world.status("n1", &report("Ready"));
    insta::assert_snapshot!(serde_yaml::to_string(&built(&world, "c").status).unwrap());
}

fn exhausted(hash: &str) -> Value {
    let mut status = report("Waiting");
    let action = json!({"kind": "UnloadModule", "target": "mlx5_ib", "desired": "unloaded", "cost": "Traffic",
        "attempts": 3, "exhausted": true, "message": "it is in use"});
    status["plan"] =
        json!({"hash": "p", "installHash": hash, "cost": "Traffic", "actions": [action]});
    status
}

#[test]
fn failed_maintenance_halts_the_cluster_and_says_what_to_do() {
    let mut world = settled(&json!({"mode": "Enforce"}), &["n1", "n2"]);
    let hash = world.snapshot.gpu_nodes["n1"].spec.install_hash.clone();
    world.status("n1", &exhausted(&hash));
    let mut wanting = report("Waiting");
    wanting["plan"] = json!({"hash": "p", "installHash": hash, "cost": "Reboot", "actions": []});
    world.status("n2", &wanting);
    let built = built(&world, "c");
    assert_eq!(verdict(&built, "Degraded"), "True MaintenanceHalted");
    assert_eq!(verdict(&built, "Ready"), "False MaintenanceHalted");
    let message = condition(&built, "Degraded").2;
    for part in [
        "n1",
        "UnloadModule mlx5_ib",
        "gpurdma.dev/reset-attempts",
        "1 wait",
    ] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    let reasons: Vec<_> = built
        .status
        .nodes
        .iter()
        .map(|row| row.reason.as_str())
        .collect();
    assert_eq!(reasons, ["MaintenanceFailed", "MaintenanceHalted"]);
}

#[test]
fn a_slot_that_a_foreign_cordon_takes_is_named() {
    let mut world = settled(&json!({"mode": "Enforce"}), &["n1", "n2"]);
    let hash = world.snapshot.gpu_nodes["n1"].spec.install_hash.clone();
    world.status("n2", &report("Ready"));
    world.snapshot.nodes.get_mut("n2").unwrap().cordoned = true;
    let mut wanting = report("Waiting");
    wanting["plan"] = json!({"hash": "p", "installHash": hash, "cost": "Reboot", "actions": []});
    world.status("n1", &wanting);
    let row = &built(&world, "c").status.nodes[0];
    assert_eq!(row.reason, "WaitingForGrant");
    assert!(row.message.contains("n2 (cordoned)"), "{}", row.message);
}
