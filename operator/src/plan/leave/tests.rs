use std::sync::Arc;

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
        plugin: false,
        driver: None,
        stays: None,
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

fn granted(world: &mut World, node: &str) {
    let object = Arc::make_mut(world.snapshot.gpu_nodes.get_mut(node).unwrap());
    object.spec.maintenance = Some(crds::node::Maintenance {
        install_hash: object.spec.install_hash.clone(),
        granted_plan: "p".into(),
        attempt: 1,
    });
    tainted(world, node);
}

/// As the API server counts and as the rollout's write leaves it.
fn taken_back(world: &mut World, node: &str) {
    let object = Arc::make_mut(world.snapshot.gpu_nodes.get_mut(node).unwrap());
    object.spec.maintenance = None;
    object.metadata.generation = Some(2);
}

#[test]
fn a_node_that_leaves_with_a_grant_is_kept_until_its_agent_has_confirmed() {
    let spec = json!({"mode": "Enforce", "nodeSelector": {"matchLabels": {"pool": "gpu"}}});
    let mut world = World::new(&[("c", spec)], &["n1"]);
    world.set_label("n1", "pool", "gpu");
    world.report("c", "Waiting");
    granted(&mut world, "n1");
    world.delete("c");
    let changes = world.plan("c");
    assert_eq!(
        decided(&changes),
        [("n1", vec![Step::EndGrant(crate::rollout::End::Released)])]
    );
    assert!(changes.forget.is_empty() && changes.untaint.is_empty());
    assert!(
        changes
            .prune
            .iter()
            .all(|one| one.name != crate::components::AGENT),
        "the agent is still needed"
    );
    world.apply(&changes);
    taken_back(&mut world, "n1");
    let waiting = world.plan("c");
    assert!(waiting.forget.is_empty() && !waiting.holds_nothing());
    let mut silent = World {
        snapshot: world.snapshot.clone(),
        now: world.now + PATIENCE,
    };
    silent.settle("c");
    assert!(silent.snapshot.gpu_nodes.is_empty(), "not for ever");
    world.status("n1", &json!({"phase": "Waiting", "observedGeneration": 2}));
    world.settle("c");
    assert!(world.snapshot.gpu_nodes.is_empty() && !world.snapshot.nodes["n1"].tainted);
}

#[test]
fn a_cluster_that_takes_a_node_over_ends_a_grant_for_something_else() {
    let spec = |priority: u32, umad: &str| json!({"mode": "Enforce", "priority": priority, "driver": {"openibConf": {"UMAD_LOAD": umad}}});
    for (umad, ends) in [("no", true), ("yes", false)] {
        let mut world = World::new(&[("a", spec(0, "yes"))], &["n1"]);
        world.settle("a");
        granted(&mut world, "n1");
        world.snapshot.clusters.push(object("b", &spec(1, umad)));
        let mut changes = world.plan("b");
        assert_eq!(changes.gpu_nodes[0].spec.cluster, "b");
        changes.gpu_nodes[0].spec.maintenance =
            world.snapshot.gpu_nodes["n1"].spec.maintenance.clone();
        world.apply(&changes);
        let steps = world.plan("b").maintenance.remove(0).steps;
        let expected = Step::EndGrant(crate::rollout::End::HashChanged);
        assert_eq!(steps.contains(&expected), ends, "{umad}: {steps:?}");
        assert!(world.plan("a").maintenance.is_empty());
    }
}
