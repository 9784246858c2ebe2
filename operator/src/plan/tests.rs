use std::sync::Arc;

use crds::names::DRIVER_LABEL;
use serde_json::{Value, json};

use super::*;
use crate::rollout::{State, Step};
use crate::validate::tests::object;

mod world;

pub(crate) use world::World;

fn enforce() -> Value {
    json!({"mode": "Enforce"})
}

fn container() -> Value {
    json!({"mode": "Enforce", "driver": {"source": "Container",
           "container": {"repository": "r", "image": "i", "version": "1"}}})
}

#[test]
fn a_first_cluster_makes_nodes_and_the_agent() {
    let world = World::new(&[("c", json!({}))], &["n2", "n1"]);
    let changes = world.plan("c");
    let names: Vec<_> = changes
        .gpu_nodes
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(names, ["n1", "n2"]);
    assert_eq!(
        changes
            .daemon_sets
            .iter()
            .map(ResourceExt::name_any)
            .collect::<Vec<_>>(),
        [AGENT]
    );
    assert!(changes.labels.is_empty(), "Observe sets no label");
    insta::assert_snapshot!(serde_yaml::to_string(&changes.gpu_nodes[0]).unwrap());
}

const AGENT: &str = crate::components::AGENT;
const PLUGIN: &str = crate::components::PLUGIN;

#[test]
fn a_settled_world_needs_no_writes() {
    for spec in [json!({}), json!({"mode": "Plan"}), enforce(), container()] {
        World::new(&[("c", spec)], &["n1", "n2"]).settle("c");
    }
}

#[test]
fn enforce_labels_nodes_and_leaving_it_takes_the_label_back() {
    let mut world = World::new(&[("c", enforce())], &["n1"]);
    world.report("c", "Waiting");
    assert_eq!(world.label("n1", PLUGIN_LABEL), Some("true"));
    assert_eq!(world.sets(), [AGENT, PLUGIN]);
    world.snapshot.clusters = vec![object("c", &json!({"mode": "Observe"}))];
    world.settle("c");
    assert_eq!(world.label("n1", PLUGIN_LABEL), None);
    assert_eq!(
        world.sets(),
        [AGENT, PLUGIN],
        "without pods, but not made anew"
    );
}

#[test]
fn paused_keeps_the_label_as_it_is() {
    let mut world = World::new(&[("c", enforce())], &["n1"]);
    world.report("c", "Waiting");
    world.snapshot.clusters = vec![object("c", &json!({"mode": "Observe", "paused": true}))];
    world.settle("c");
    assert_eq!(world.label("n1", PLUGIN_LABEL), Some("true"));
    assert_eq!(world.sets(), [AGENT, PLUGIN]);
    let mut fresh = World::new(
        &[("c", json!({"mode": "Enforce", "paused": true}))],
        &["n1"],
    );
    fresh.report("c", "Waiting");
    assert_eq!(fresh.label("n1", PLUGIN_LABEL), None);
}

#[test]
fn a_node_gets_the_plugin_once_its_agent_has_reported_hardware() {
    for (phase, label) in [
        ("Pending", None),
        ("NotApplicable", None),
        ("Waiting", Some("true")),
    ] {
        let mut world = World::new(&[("c", enforce())], &["n1"]);
        world.settle("c");
        assert_eq!(world.label("n1", PLUGIN_LABEL), None, "no report");
        world.report("c", phase);
        assert_eq!(world.label("n1", PLUGIN_LABEL), label, "{phase}");
        world.report("c", "NotApplicable");
        assert_eq!(
            world.label("n1", PLUGIN_LABEL),
            label,
            "it keeps what it has"
        );
    }
}

#[test]
fn deleting_the_last_cluster_leaves_nothing_behind() {
    let mut world = World::new(&[("c", container())], &["n1"]);
    world.settle("c");
    world.set_label("n1", PLUGIN_LABEL, "true");
    world.set_label("n1", DRIVER_LABEL, "c");
    world.snapshot.nodes.get_mut("n1").unwrap().tainted = true;
    world.delete("c");
    let changes = world.plan("c");
    let driver = Prune {
        name: "gpu-rdma-driver-c".into(),
        keep_pods: true,
    };
    assert!(changes.prune.contains(&driver), "{:?}", changes.prune);
    world.settle("c");
    assert!(world.sets().is_empty() && world.snapshot.gpu_nodes.is_empty());
    assert_eq!(
        (
            world.label("n1", PLUGIN_LABEL),
            world.label("n1", DRIVER_LABEL)
        ),
        (None, None)
    );
    assert!(!world.snapshot.nodes["n1"].tainted);
}

#[test]
fn a_daemon_set_that_never_settles_does_not_keep_a_deleted_cluster() {
    let mut world = World::new(&[("a", enforce()), ("c", json!({}))], &["n1"]);
    world.settle("a");
    world.delete("c");
    let set = Arc::make_mut(world.snapshot.daemon_sets.get_mut(AGENT).unwrap());
    set.spec.as_mut().unwrap().min_ready_seconds = Some(1);
    set.metadata.annotations = None;
    let changes = world.plan("c");
    assert!(!changes.daemon_sets.is_empty() && changes.holds_nothing());
    world.delete("a");
    assert!(!world.plan("a").holds_nothing());
}

#[test]
fn a_node_that_leaves_is_cleaned_by_the_cluster_it_leaves() {
    let pool =
        |name: &str| json!({"mode": "Enforce", "nodeSelector": {"matchLabels": {"pool": name}}});
    let mut world = World::new(&[("a", pool("a")), ("b", pool("b"))], &["n1", "n2"]);
    world.set_label("n1", "pool", "a");
    world.set_label("n2", "pool", "b");
    world.settle("a");
    world.report("b", "Waiting");
    world.settle("a");
    world.set_label("n1", "pool", "none");
    assert!(world.plan("b").is_empty());
    let changes = world.plan("a");
    assert_eq!(changes.forget, ["n1"]);
    assert_eq!(
        changes.labels,
        [LabelChange {
            node: "n1".into(),
            labels: BTreeMap::from([(PLUGIN_LABEL, None)])
        }]
    );
}

#[test]
fn an_empty_node_cache_changes_nothing() {
    let mut world = World::new(&[("c", enforce())], &["n1"]);
    world.settle("c");
    world.snapshot.nodes.clear();
    world.delete("c");
    assert!(world.plan("c").is_empty());
}

#[test]
fn a_recreated_node_gets_its_new_owner() {
    let mut world = World::new(&[("c", json!({}))], &["n1"]);
    world.settle("c");
    world.snapshot.nodes.get_mut("n1").unwrap().uid = "uid-new".into();
    let changes = world.plan("c");
    assert_eq!(changes.gpu_nodes[0].spec.node_uid, "uid-new");
    assert_eq!(changes.gpu_nodes[0].owner_references()[0].uid, "uid-new");
}

#[test]
fn a_grant_is_not_the_assignments_business() {
    let mut world = World::new(&[("c", json!({}))], &["n1"]);
    world.settle("c");
    let object = Arc::make_mut(world.snapshot.gpu_nodes.get_mut("n1").unwrap());
    object.spec.maintenance = Some(crds::node::Maintenance::default());
    let changes = world.plan("c");
    assert!(changes.gpu_nodes.is_empty(), "{:?}", changes.gpu_nodes);
}

#[test]
fn a_hand_edited_daemon_set_is_put_right_and_defaults_are_no_edit() {
    let mut world = World::new(&[("c", json!({}))], &["n1"]);
    world.settle("c");
    let edit = |world: &mut World, change: fn(&mut k8s_openapi::api::core::v1::PodSpec)| {
        let set = Arc::make_mut(world.snapshot.daemon_sets.get_mut(AGENT).unwrap());
        change(set.spec.as_mut().unwrap().template.spec.as_mut().unwrap());
    };
    edit(&mut world, |pod| pod.restart_policy = Some("Always".into()));
    assert!(world.plan("c").is_empty());
    edit(&mut world, |pod| {
        pod.containers[0].image = Some("example.org/other".into());
    });
    assert_eq!(world.plan("c").daemon_sets.len(), 1);
}

#[test]
fn a_cluster_that_makes_no_sense_stops_pruning_and_keeps_the_agent() {
    let mut world = World::new(&[("a", enforce()), ("b", json!({"priority": -1}))], &["n1"]);
    world.settle("a");
    world.snapshot.clusters = vec![
        object("a", &json!({"driver": {"source": "Container"}})),
        object("b", &json!({})),
    ];
    let changes = world.plan("b");
    assert!(changes.prune.is_empty() && changes.gpu_nodes.is_empty() && changes.labels.is_empty());
    assert!(
        changes
            .daemon_sets
            .iter()
            .all(|set| set.name_any() != AGENT)
    );
}

#[test]
fn a_cluster_that_makes_no_sense_keeps_its_agents_and_does_not_hold_up_others() {
    let pool = |name: &str| json!({"nodeSelector": {"matchLabels": {"pool": name}}});
    let mut world = World::new(&[("a", pool("a"))], &["n1", "n2"]);
    world.set_label("n1", "pool", "a");
    world.set_label("n2", "pool", "b");
    world.settle("a");
    world.snapshot.clusters = vec![object("a", &pool("a a")), object("b", &pool("b"))];
    world.settle("b");
    let affinity = |world: &World| {
        serde_json::to_string(components::affinity::terms(
            &world.snapshot.daemon_sets[AGENT],
        ))
        .unwrap()
    };
    let terms = affinity(&world);
    assert!(
        terms.contains(r#"["a"]"#) && terms.contains(r#"["b"]"#) && !terms.contains("a a"),
        "{terms}"
    );
    world.snapshot.clusters = vec![object("b", &pool("b"))];
    world.settle("b");
    assert!(!affinity(&world).contains(r#"["a"]"#));
}

#[test]
fn a_cluster_that_cannot_be_read_is_not_deleted() {
    let mut world = World::new(&[("a", enforce()), ("b", json!({"priority": -1}))], &["n1"]);
    world.report("a", "Waiting");
    world.snapshot.clusters = vec![object("b", &json!({"priority": -1}))];
    let unreadable = [("a".to_owned(), "broken".to_owned())];
    world.snapshot.unreadable = unreadable.into();
    let changes = world.plan("b");
    assert!(changes.holds_nothing() && changes.gpu_nodes.is_empty());
    world.snapshot.unreadable.clear();
    assert!(!world.plan("b").is_empty());
}

#[test]
fn a_driver_that_is_no_longer_asked_for_stays_until_its_nodes_are_free() {
    let mut world = World::new(&[("c", container())], &["n1"]);
    world.settle("c");
    world.set_label("n1", DRIVER_LABEL, "c");
    world.snapshot.clusters = vec![object("c", &enforce())];
    let changes = world.plan("c");
    assert!(changes.prune.is_empty());
    assert_eq!(changes.maintenance[0].steps, [Step::Taint]);
    world
        .snapshot
        .nodes
        .get_mut("n1")
        .unwrap()
        .labels
        .remove(DRIVER_LABEL);
    assert_eq!(
        world.plan("c").prune,
        [Prune {
            name: "gpu-rdma-driver-c".into(),
            keep_pods: false
        }]
    );
}

#[test]
fn a_costly_plan_starts_maintenance() {
    let mut world = World::new(&[("c", enforce())], &["n1"]);
    world.settle("c");
    let hash = world.snapshot.gpu_nodes["n1"].spec.install_hash.clone();
    world.status(
        "n1",
        &json!({"observedGeneration": 1, "phase": "Waiting",
        "summary": {"gpus": 8, "nics": 8, "admittedPairs": 0},
        "plan": {"hash": "p", "installHash": hash, "cost": "Traffic", "actions": []}}),
    );
    let changes = world.plan("c");
    assert_eq!(changes.maintenance[0].steps, [Step::Taint]);
    assert_eq!(changes.maintenance[0].state, State::WaitingForPods(vec![]));
}
