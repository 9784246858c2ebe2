use serde_json::{Value, json};

use super::*;
use crate::validate::tests::object;
use crate::validate::validate;

const POOL: &str = "pool";

fn world(clusters: &[(&str, Value)]) -> Validated {
    validate(
        &clusters
            .iter()
            .map(|(name, spec)| object(name, spec))
            .collect::<Vec<_>>(),
    )
}

fn pool(name: &str) -> Value {
    json!({"nodeSelector": {"matchLabels": {POOL: name}}})
}

fn node(pool: &str) -> NodeFacts {
    let labels = [(crate::validate::OS_LABEL, "linux"), (POOL, pool)];
    let labels = labels
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    NodeFacts {
        uid: "u".into(),
        labels,
        ..NodeFacts::default()
    }
}

fn nodes(list: &[(&str, &str)]) -> BTreeMap<String, NodeFacts> {
    list.iter()
        .map(|(name, pool)| ((*name).to_owned(), node(pool)))
        .collect()
}

fn crowd(count: usize, pool: &str) -> BTreeMap<String, NodeFacts> {
    (0..count)
        .map(|index| (format!("n{index:03}"), node(pool)))
        .collect()
}

fn present(list: &[(&str, &str)], selector: &str) -> BTreeMap<String, Present> {
    list.iter()
        .map(|(node, cluster)| {
            (
                (*node).to_owned(),
                Present {
                    cluster: (*cluster).to_owned(),
                    selector: selector.to_owned(),
                },
            )
        })
        .collect()
}

fn owners(assignments: &Assignments) -> Vec<(&str, &str)> {
    assignments
        .owner
        .iter()
        .map(|(node, cluster)| (node.as_str(), cluster.as_str()))
        .collect()
}

#[test]
fn each_cluster_gets_what_it_selects() {
    let result = assign(
        &world(&[("a", pool("x")), ("b", pool("y"))]),
        &nodes(&[("n1", "x"), ("n2", "y"), ("n3", "z")]),
        &BTreeMap::new(),
    );
    assert_eq!(owners(&result), [("n1", "a"), ("n2", "b")]);
    assert!(result.ties.is_empty() && result.released.is_empty());
}

#[test]
fn the_higher_priority_has_the_node_and_the_other_sees_it() {
    let mut high = pool("x");
    high["priority"] = json!(5);
    let result = assign(
        &world(&[("a", json!({})), ("b", high)]),
        &nodes(&[("n1", "x"), ("n2", "y")]),
        &BTreeMap::new(),
    );
    assert_eq!(owners(&result), [("n1", "b"), ("n2", "a")]);
    assert_eq!((result.conflicting("a"), result.conflicting("b")), (1, 0));
    assert!(result.ties.is_empty(), "precedence is no conflict");
}

#[test]
fn between_equals_the_present_owner_keeps_and_both_say_conflict() {
    let clusters = world(&[("a", json!({})), ("b", json!({}))]);
    let result = assign(
        &clusters,
        &nodes(&[("n1", "x")]),
        &present(&[("n1", "b")], ""),
    );
    assert_eq!(owners(&result), [("n1", "b")]);
    assert_eq!(
        result.ties["a"],
        BTreeSet::from([Tie {
            node: "n1".into(),
            with: "b".into()
        }])
    );
    assert_eq!(
        result.ties["b"],
        BTreeSet::from([Tie {
            node: "n1".into(),
            with: "a".into()
        }])
    );
}

#[test]
fn a_node_that_nobody_had_goes_by_age_then_name() {
    let clusters = world(&[("b", json!({})), ("a", json!({}))]);
    assert_eq!(
        owners(&assign(&clusters, &nodes(&[("n1", "x")]), &BTreeMap::new())),
        [("n1", "a")]
    );
    let mut younger = validate(&[object("a", &json!({})), object("b", &json!({}))]);
    younger.clusters[0].created = Some("2026-06-01T00:00:00Z".parse().unwrap());
    assert_eq!(
        owners(&assign(&younger, &nodes(&[("n1", "x")]), &BTreeMap::new())),
        [("n1", "b")]
    );
}

#[test]
fn a_cluster_being_deleted_releases_to_the_next_or_to_nobody() {
    let mut clusters = world(&[("a", json!({"priority": 1})), ("b", pool("x"))]);
    clusters.clusters[0].deleting = true;
    let result = assign(
        &clusters,
        &nodes(&[("n1", "x"), ("n2", "y")]),
        &present(&[("n1", "a"), ("n2", "a")], ""),
    );
    assert_eq!(owners(&result), [("n1", "b")]);
    assert_eq!(
        result.released,
        BTreeMap::from([("n2".to_owned(), "a".to_owned())])
    );
}

#[test]
fn a_cluster_that_makes_no_sense_keeps_its_nodes() {
    let clusters = world(&[
        ("a", json!({"driver": {"source": "Container"}})),
        ("b", json!({"priority": 9})),
    ]);
    let result = assign(
        &clusters,
        &nodes(&[("n1", "x"), ("n2", "x")]),
        &present(&[("n1", "a")], ""),
    );
    assert_eq!(owners(&result), [("n1", "a"), ("n2", "b")]);
    assert!(result.released.is_empty());
}

#[test]
fn an_edited_selector_releases_at_once() {
    let before: Vec<_> = (0..40).map(|index| (format!("n{index:03}"), "a")).collect();
    let before: Vec<_> = before
        .iter()
        .map(|(node, cluster)| (node.as_str(), *cluster))
        .collect();
    let result = assign(
        &world(&[("a", pool("y"))]),
        &crowd(40, "x"),
        &present(&before, "pool=x"),
    );
    assert_eq!(result.released.len(), 40);
    assert!(result.held.is_empty());
}

#[test]
fn labels_that_vanish_in_a_crowd_release_nothing() {
    let before: Vec<_> = (0..40).map(|index| (format!("n{index:03}"), "a")).collect();
    let before: Vec<_> = before
        .iter()
        .map(|(node, cluster)| (node.as_str(), *cluster))
        .collect();
    let result = assign(
        &world(&[("a", pool("x"))]),
        &crowd(40, "gone"),
        &present(&before, "pool=x"),
    );
    assert!(result.released.is_empty());
    assert_eq!(result.held["a"].len(), 40);
    assert_eq!(result.nodes_of("a").count(), 40);
    assert_eq!(result.matched["a"].len(), 0);
}

#[test]
fn a_few_nodes_may_be_relabelled_away() {
    let result = assign(
        &world(&[("a", pool("x"))]),
        &nodes(&[("n1", "gone"), ("n2", "gone")]),
        &present(&[("n1", "a"), ("n2", "a")], "pool=x"),
    );
    assert_eq!(result.released.len(), 2);
}

#[test]
fn an_empty_node_list_releases_nothing() {
    let result = assign(
        &world(&[("a", json!({}))]),
        &BTreeMap::new(),
        &present(&[("n1", "a")], ""),
    );
    assert!(result.owner.is_empty() && result.released.is_empty());
}
