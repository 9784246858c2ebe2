//! States of a cluster that are no error and must be seen: no node, a rival, paused, only looking.

use e2e::cluster::Cluster;
use e2e::scenario;
use serde_json::json;

use super::support::{DGX_A100, Other, Pods, cluster, enforce, wait_all_advertised};

fn wait_condition(cluster: &Cluster, name: &str, condition: &str, field: &str, wanted: &str) {
    let path = format!("{{.status.conditions[?(@.type==\"{condition}\")].{field}}}");
    let object = ["gpurdmacluster", name];
    scenario::wait_value(cluster, &object, &path, 60, |seen| seen == wanted).unwrap();
}

#[test]
fn a_cluster_without_nodes_says_so_and_is_no_error() {
    let cluster = cluster();
    let nowhere = json!({"nodeSelector": {"matchLabels": {"pool": "to-be-built"}}});
    let _other = Other::apply(&cluster, "nowhere", &nowhere);
    wait_condition(&cluster, "nowhere", "Ready", "reason", "NoMatchingNodes");
    wait_condition(&cluster, "nowhere", "Degraded", "status", "False");
    let matched = scenario::value(
        &cluster,
        &["gpurdmacluster", "nowhere"],
        "{.status.matched}",
    );
    assert_eq!(matched.unwrap(), "0");
}

#[test]
fn of_two_clusters_with_one_priority_the_owner_keeps_serving_and_both_say_so() {
    let cluster = cluster();
    let rival = Other::apply(&cluster, "rival", &json!({"mode": "Enforce"}));
    wait_condition(&cluster, "rival", "Conflict", "status", "True");
    wait_condition(&cluster, "all", "Conflict", "status", "True");
    wait_all_advertised(&cluster);
    let owner = scenario::value(&cluster, &["gpurdmanode", DGX_A100.0], "{.spec.cluster}");
    assert_eq!(owner.unwrap(), "all");
    drop(rival);
    wait_condition(&cluster, "all", "Conflict", "status", "False");
}

#[test]
fn a_paused_cluster_says_so_and_goes_on_serving() {
    let cluster = cluster();
    enforce(&cluster, &json!({"paused": true})).unwrap();
    wait_condition(&cluster, "all", "Paused", "status", "True");
    wait_all_advertised(&cluster);
    enforce(&cluster, &json!({"paused": false})).unwrap();
    wait_condition(&cluster, "all", "Paused", "status", "False");
}

#[test]
fn back_to_observe_pods_keep_what_they_hold_and_nothing_more_is_given() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("before-observe", DGX_A100.0, 2);
    let before = scenario::granted(&cluster, "before-observe").unwrap();
    let observe = scenario::gpu_rdma_cluster("all", &json!({"mode": "Observe"}));
    scenario::apply(&cluster, &observe).unwrap();
    wait_condition(&cluster, "all", "Ready", "reason", "ObserveOnly");
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, 0).unwrap();
    let after = scenario::granted(&cluster, "before-observe").unwrap();
    assert_eq!(after, before);
    enforce(&cluster, &json!({})).unwrap();
    wait_all_advertised(&cluster);
    assert_eq!(
        scenario::granted(&cluster, "before-observe").unwrap(),
        before
    );
}
