use serde_json::{Value, json};

use super::*;
use crate::components::template_hash;
use crate::facts::{DriverPod, PodFacts};
use crate::plan::Prune;
use crate::plan::tests::World;
use crate::rollout::{State, Step};
use crate::validate::tests::object;

fn pool(mode: &str) -> Value {
    json!({"mode": mode, "nodeSelector": {"matchLabels": {"pool": "gpu"}}, "driver": {"source": "Container",
           "container": {"repository": "r", "image": "i", "version": "1"}}})
}

/// Two nodes of an enforcing cluster, each with a driver pod.
fn world() -> World {
    let mut world = World::new(&[("c", pool("Enforce"))], &["n1", "n2"]);
    for node in ["n1", "n2"] {
        world.set_label(node, "pool", "gpu");
        world.set_label(node, DRIVER_LABEL, "c");
        world.set_label(node, PLUGIN_LABEL, "true");
    }
    world.settle("c");
    let set = &world.snapshot.daemon_sets["gpu-rdma-driver-c"];
    let hash = template_hash(set).unwrap().to_owned();
    for node in ["n1", "n2"] {
        let pod = driver_pod(node, &hash);
        world.snapshot.pods.insert(node.into(), vec![pod]);
    }
    world.settle("c");
    world
}

fn driver_pod(node: &str, hash: &str) -> PodFacts {
    let driver = DriverPod {
        cluster: "c".into(),
        template_hash: hash.into(),
        ready: true,
        deleting: false,
    };
    PodFacts {
        namespace: "ns".into(),
        name: format!("driver-{node}"),
        node: node.into(),
        driver: Some(driver),
        ..PodFacts::default()
    }
}

fn train() -> PodFacts {
    PodFacts {
        namespace: "ml".into(),
        name: "train-0".into(),
        node: "n1".into(),
        resources: ["rdma/x".to_owned()].into(),
        driver: None,
    }
}

fn decided(changes: &Changes) -> Vec<(&str, Vec<Step>)> {
    let decisions = changes.maintenance.iter();
    decisions
        .map(|one| (one.node.as_str(), one.steps.clone()))
        .collect()
}

fn tainted(world: &mut World, node: &str) {
    world.snapshot.nodes.get_mut(node).unwrap().tainted = true;
}

#[test]
fn nodes_that_leave_give_up_their_driver_one_slot_at_a_time() {
    let mut world = world();
    world.set_label("n1", "pool", "none");
    world.set_label("n2", "pool", "none");
    let changes = world.plan("c");
    assert!(changes.forget.is_empty(), "not before the driver is gone");
    let plugin = BTreeMap::from([(PLUGIN_LABEL, None)]);
    assert!(changes.labels.iter().all(|one| one.labels == plugin));
    assert_eq!(
        decided(&changes),
        [("n1", vec![Step::Taint]), ("n2", vec![])]
    );
    tainted(&mut world, "n1");
    world.snapshot.pods.get_mut("n1").unwrap().push(train());
    let waiting = world.plan("c").maintenance.remove(0);
    assert_eq!(
        waiting.state,
        State::WaitingForPods(vec!["ml/train-0".into()])
    );
    world.snapshot.pods.get_mut("n1").unwrap().pop();
    let off = Step::DriverLabel { wanted: false };
    assert_eq!(decided(&world.plan("c"))[0], ("n1", vec![off]));
}

#[test]
fn a_node_is_let_go_once_its_driver_pod_is_gone() {
    let mut world = world();
    world.set_label("n1", "pool", "none");
    tainted(&mut world, "n1");
    let facts = world.snapshot.nodes.get_mut("n1").unwrap();
    facts.labels.remove(DRIVER_LABEL);
    let pod = &mut world.snapshot.pods.get_mut("n1").unwrap()[0];
    pod.driver.as_mut().unwrap().deleting = true;
    let changes = world.plan("c");
    assert!(changes.untaint.is_empty() && changes.forget.is_empty());
    world.snapshot.pods.remove("n1");
    let changes = world.plan("c");
    assert_eq!(
        (changes.untaint, changes.forget),
        (vec!["n1".into()], vec!["n1".into()])
    );
}

#[test]
fn a_deleted_cluster_leaves_driver_pods_with_their_label() {
    let mut world = world();
    world.delete("c");
    let orphaned = Prune {
        name: "gpu-rdma-driver-c".into(),
        keep_pods: true,
    };
    assert!(world.plan("c").prune.contains(&orphaned));
    world.settle("c");
    assert!(world.snapshot.gpu_nodes.is_empty());
    let labels = |world: &World| {
        [DRIVER_LABEL, PLUGIN_LABEL].map(|label| world.label("n1", label).map(ToOwned::to_owned))
    };
    assert_eq!(labels(&world), [Some("c".to_owned()), None]);
    world.snapshot.pods.remove("n1");
    world.snapshot.clusters = vec![object(
        "d",
        &json!({"nodeSelector": {"matchLabels": {"pool": "x"}}}),
    )];
    world.settle("d");
    assert_eq!(labels(&world), [None, None]);
}

#[test]
fn without_enforcing_nothing_is_taken_from_a_node_that_leaves() {
    let mut world = world();
    world.snapshot.clusters = vec![object("c", &pool("Observe"))];
    world.settle("c");
    world.set_label("n1", "pool", "none");
    tainted(&mut world, "n1");
    world.settle("c");
    assert_eq!(world.label("n1", DRIVER_LABEL), Some("c"));
    assert!(!world.snapshot.nodes["n1"].tainted && !world.snapshot.gpu_nodes.contains_key("n1"));
    world.snapshot.clusters = vec![object("c", &pool("Enforce"))];
    let changes = world.plan("c");
    assert_eq!(decided(&changes)[0], ("n1", vec![Step::Taint]));
}
