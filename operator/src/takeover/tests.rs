use crds::names::{GPU_PLUGIN_LABEL as LABEL, PLUGIN_LABEL};
use crds::node::GpuPlugin;
use serde_json::{Value, json};

use crate::facts::PodFacts;
use crate::plan::tests::World;
use crate::validate::tests::object;

fn adopt(name: &str) -> Value {
    json!({"mode": "Enforce", "devicePlugin": {"takeover": "Adopt", "resources": [{"name": name}]}})
}

/// A node whose GPUs the other plugin has, as its agent tells it.
fn theirs() -> Value {
    json!({
        "observedGeneration": 1, "phase": "Degraded", "summary": {"gpus": 8, "nics": 8, "admittedPairs": 0},
        "pairs": [{"gpu": "GPU0", "nics": ["mlx5_0"], "distance": "PXB", "admitted": false}],
        "otherAdvertisers": [{"resource": "nvidia.com/gpu", "gpus": 8}],
    })
}

fn ours() -> Value {
    json!({"observedGeneration": 1, "phase": "Ready", "summary": {"gpus": 8, "nics": 8, "admittedPairs": 8}})
}

/// Nodes of one cluster with gpu-operator's label.
fn world(spec: &Value, nodes: &[&str], status: &Value) -> World {
    let mut world = World::new(&[("c", spec.clone())], nodes);
    for node in nodes {
        world.set_label(node, LABEL, "true");
    }
    world.settle("c");
    for node in nodes {
        world.status(node, status);
    }
    world
}

/// Plans and applies once.
fn turn(world: &mut World) {
    let changes = world.plan("c");
    world.apply(&changes);
}

fn hold(world: &mut World, node: &str, resource: &str) {
    let pod = PodFacts {
        namespace: "default".into(),
        name: "train".into(),
        node: node.into(),
        resources: [resource.to_owned()].into(),
        ..PodFacts::default()
    };
    world
        .snapshot
        .pods
        .entry(node.into())
        .or_default()
        .push(pod);
}

fn said(world: &World, node: &str) -> String {
    let takeover = world.plan("c").takeover;
    let standing = takeover.get(node);
    standing
        .map(|one| format!("{} {}", one.reason, one.message))
        .unwrap_or_default()
}

fn told(world: &World, node: &str) -> GpuPlugin {
    world.snapshot.gpu_nodes[node].spec.gpu_plugin
}

#[test]
fn nothing_is_switched_off_that_nobody_asked_to_take_over() {
    let specs = [
        json!({"mode": "Enforce"}),
        json!({"mode": "Plan", "devicePlugin": {"takeover": "Adopt"}}),
        json!({"mode": "Observe", "devicePlugin": {"takeover": "Adopt"}}),
        json!({"mode": "Enforce", "paused": true, "devicePlugin": {"takeover": "Adopt"}}),
    ];
    for spec in specs {
        let world = world(&spec, &["n1"], &theirs());
        assert_eq!(world.plan("c").switches, [], "{spec}");
    }
}

#[test]
fn nodes_are_taken_over_one_after_the_other() {
    let mut world = world(&adopt("rdma/gpudirect"), &["n1", "n2"], &theirs());
    turn(&mut world);
    assert_eq!(world.label("n1", LABEL), Some("false"));
    assert_eq!(
        world.snapshot.nodes["n1"].gpu_plugin_was.as_deref(),
        Some("true")
    );
    assert_eq!(world.label("n2", LABEL), Some("true"));
    turn(&mut world);
    assert_eq!(told(&world, "n1"), GpuPlugin::SwitchedOff);
    assert!(
        said(&world, "n1").starts_with("TakingOver "),
        "{}",
        said(&world, "n1")
    );
    let waits =
        "TakeoverWaits Waits for its turn: 1 by spec.upgrade.maxUnavailable, out of service: n1.";
    assert_eq!(said(&world, "n2"), waits);
    world.status("n1", &ours());
    turn(&mut world);
    assert_eq!(world.label("n2", LABEL), Some("false"));
    world.status("n2", &ours());
    world.settle("c");
    assert_eq!(
        (said(&world, "n1"), said(&world, "n2")),
        (String::new(), String::new())
    );
}

#[test]
fn a_node_that_offers_nothing_after_the_takeover_keeps_the_others_from_it() {
    let mut world = world(&adopt("rdma/gpudirect"), &["n1", "n2"], &theirs());
    turn(&mut world);
    turn(&mut world);
    let nothing =
        json!({"observedGeneration": 1, "phase": "Degraded", "summary": {"gpus": 8, "nics": 8}});
    world.status("n1", &nothing);
    world.settle("c");
    assert_eq!(world.label("n2", LABEL), Some("true"));
}

#[test]
fn under_another_name_a_node_waits_until_no_pod_holds_its_gpus() {
    let mut world = world(&adopt("rdma/gpudirect"), &["n1"], &theirs());
    hold(&mut world, "n1", "nvidia.com/gpu");
    world.settle("c");
    assert_eq!(world.label("n1", LABEL), Some("true"));
    assert_eq!(
        said(&world, "n1"),
        "TakeoverWaits Waits for these pods, which hold GPUs under another name, to end: default/train. Cordon the node to keep new ones away."
    );
    world.snapshot.pods.clear();
    turn(&mut world);
    assert_eq!(world.label("n1", LABEL), Some("false"));
}

#[test]
fn under_the_same_name_a_node_changes_with_its_pods() {
    let mut world = world(&adopt("nvidia.com/gpu"), &["n1"], &theirs());
    hold(&mut world, "n1", "nvidia.com/gpu");
    turn(&mut world);
    assert_eq!(world.label("n1", LABEL), Some("false"));
}

#[test]
fn what_could_not_be_used_afterwards_is_left_where_it_is_and_said() {
    let partitioned =
        json!([{"resource": "nvidia.com/mig-1g.10gb", "gpus": 8, "partitioned": true}]);
    let injection = json!([{"id": "GPU_INJECTION_UNAVAILABLE", "severity": "Error", "component": "GPU0",
        "message": "no CDI specification"}]);
    let cases = [
        (
            "otherAdvertisers",
            partitioned,
            "GpuPartitioned nvidia.com/mig-1g.10gb hands out parts of GPUs",
        ),
        (
            "findings",
            injection,
            "GpuInjectionUnavailable The node's GPUs could not be put into containers after it",
        ),
        (
            "pairs",
            json!([]),
            "TakeoverWaits No pair would be there after it",
        ),
    ];
    for (field, value, text) in cases {
        let mut status = theirs();
        status[field] = value;
        let mut world = world(&adopt("nvidia.com/gpu"), &["n1"], &status);
        world.settle("c");
        assert_eq!(world.label("n1", LABEL), Some("true"), "{field}");
        assert!(
            said(&world, "n1").starts_with(text),
            "{}",
            said(&world, "n1")
        );
    }
}

#[test]
fn without_gpu_operators_label_a_person_is_asked() {
    let mut world = world(&adopt("nvidia.com/gpu"), &["n1"], &theirs());
    world
        .snapshot
        .nodes
        .get_mut("n1")
        .unwrap()
        .labels
        .remove(LABEL);
    assert_eq!(world.plan("c").switches, []);
    assert!(
        said(&world, "n1").contains("switch it off on this node by hand"),
        "{}",
        said(&world, "n1")
    );
    world.set_label("n1", LABEL, "paused-for-driver-upgrade");
    assert_eq!(world.plan("c").switches, []);
    assert!(said(&world, "n1").contains("waits until its owner, gpu-operator, is done"));
}

/// gpu-operator sets the label anew where node-feature-discovery took all labels away for a moment.
#[test]
fn a_label_that_was_lost_and_made_again_is_switched_off_again() {
    let mut world = world(&adopt("nvidia.com/gpu"), &["n1"], &theirs());
    turn(&mut world);
    world.set_label("n1", LABEL, "true");
    turn(&mut world);
    assert_eq!(world.label("n1", LABEL), Some("false"));
    assert_eq!(
        world.snapshot.nodes["n1"].gpu_plugin_was.as_deref(),
        Some("true")
    );
}

fn taken(name: &str) -> World {
    let mut world = world(&adopt(name), &["n1"], &theirs());
    turn(&mut world);
    world.settle("c");
    world.status("n1", &ours());
    world.settle("c");
    assert_eq!(world.label("n1", PLUGIN_LABEL), Some("true"));
    world
}

/// Our plugin's pod, until the test takes it away.
fn with_plugin(world: &mut World) {
    let pod = PodFacts {
        namespace: "ns".into(),
        name: "plugin".into(),
        node: "n1".into(),
        plugin: true,
        ..PodFacts::default()
    };
    world
        .snapshot
        .pods
        .entry("n1".into())
        .or_default()
        .push(pod);
}

fn without_plugin(world: &mut World) {
    world
        .snapshot
        .pods
        .get_mut("n1")
        .unwrap()
        .retain(|pod| !pod.plugin);
}

#[test]
fn on_the_way_back_our_plugin_leaves_first_and_returns_last() {
    let mut world = taken("nvidia.com/gpu");
    with_plugin(&mut world);
    hold(&mut world, "n1", "nvidia.com/gpu");
    let mut never = adopt("nvidia.com/gpu");
    never["devicePlugin"]["takeover"] = json!("Never");
    world.snapshot.clusters = vec![object("c", &never)];
    world.settle("c");
    assert_eq!(told(&world, "n1"), GpuPlugin::ComesBack);
    assert_eq!(
        (world.label("n1", PLUGIN_LABEL), world.label("n1", LABEL)),
        (None, Some("false"))
    );
    assert!(said(&world, "n1").contains("ours leaves the node"));
    without_plugin(&mut world);
    turn(&mut world);
    assert_eq!(
        (world.label("n1", PLUGIN_LABEL), world.label("n1", LABEL)),
        (None, Some("true"))
    );
    world.settle("c");
    assert_eq!(told(&world, "n1"), GpuPlugin::AsFound);
    assert_eq!(world.label("n1", PLUGIN_LABEL), Some("true"));
    assert_eq!(world.snapshot.nodes["n1"].gpu_plugin_was, None);
}

#[test]
fn a_deleted_cluster_stays_until_its_nodes_are_given_back() {
    let mut world = taken("rdma/gpudirect");
    with_plugin(&mut world);
    hold(&mut world, "n1", "rdma/gpudirect");
    world.delete("c");
    turn(&mut world);
    without_plugin(&mut world);
    assert_eq!(world.label("n1", LABEL), Some("false"));
    assert!(
        said(&world, "n1").contains("default/train"),
        "{}",
        said(&world, "n1")
    );
    assert!(!world.plan("c").holds_nothing() && world.plan("c").is_empty());
    world.snapshot.pods.clear();
    turn(&mut world);
    assert_eq!(world.label("n1", LABEL), Some("true"));
    world.settle("c");
    assert!(world.plan("c").holds_nothing() && world.snapshot.gpu_nodes.is_empty());
}

#[test]
fn without_give_back_the_label_stays_and_is_forgotten() {
    let mut world = taken("rdma/gpudirect");
    let mut spec = adopt("rdma/gpudirect");
    spec["devicePlugin"]["giveBack"] = json!(false);
    world.snapshot.clusters = vec![object("c", &spec)];
    world.settle("c");
    world.delete("c");
    turn(&mut world);
    assert_eq!(world.label("n1", LABEL), Some("false"));
    assert_eq!(world.snapshot.nodes["n1"].gpu_plugin_was, None);
    world.settle("c");
    assert!(world.plan("c").holds_nothing());
}

#[test]
fn what_someone_else_changed_meanwhile_is_theirs() {
    let mut world = taken("rdma/gpudirect");
    world.set_label("n1", LABEL, "paused-for-driver-upgrade");
    world.delete("c");
    turn(&mut world);
    assert_eq!(world.label("n1", LABEL), Some("paused-for-driver-upgrade"));
    assert_eq!(world.snapshot.nodes["n1"].gpu_plugin_was, None);
}
