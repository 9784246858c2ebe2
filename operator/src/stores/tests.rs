use serde_json::json;

use super::*;

fn node(label: &str) -> Node {
    serde_json::from_value(
        json!({"metadata": {"name": "n1", "uid": "u", "labels": {"pool": label}}}),
    )
    .unwrap()
}

fn pod(resource: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {resource: "1"}}}]},
    }))
    .unwrap()
}

#[test]
fn a_heartbeat_does_not_matter_and_a_label_does() {
    let mut seen = Seen::default();
    assert!(seen.matters(&watcher::Event::Apply(node("a")), essence::node));
    let mut beat = node("a");
    beat.metadata.resource_version = Some("2".into());
    beat.status = Some(k8s_openapi::api::core::v1::NodeStatus::default());
    assert!(!seen.matters(&watcher::Event::Apply(beat), essence::node));
    assert!(seen.matters(&watcher::Event::Apply(node("b")), essence::node));
    assert!(seen.matters(&watcher::Event::Delete(node("b")), essence::node));
}

#[test]
fn pods_matter_while_they_ask_for_devices() {
    let mut seen = Seen::default();
    assert!(!seen.matters(&watcher::Event::Apply(pod("cpu")), essence::pod));
    assert!(!seen.matters(&watcher::Event::Delete(pod("cpu")), essence::pod));
    assert!(seen.matters(&watcher::Event::Apply(pod("rdma/gpudirect")), essence::pod));
    assert!(seen.matters(&watcher::Event::Delete(pod("rdma/gpudirect")), essence::pod));
}

#[test]
fn a_relist_is_compared_afresh() {
    let mut seen = Seen::default();
    assert!(!seen.matters(&watcher::Event::<Node>::Init, essence::node));
    assert!(seen.matters(&watcher::Event::InitApply(node("a")), essence::node));
    assert!(seen.matters(&watcher::Event::<Node>::InitDone, essence::node));
    assert!(!seen.matters(&watcher::Event::Apply(node("a")), essence::node));
}

#[test]
fn a_status_write_on_a_cluster_rings_nothing() {
    let mut cluster = GpuRdmaCluster::new("c", crds::GpuRdmaClusterSpec::default());
    let before = essence::cluster(&cluster.clone().into());
    cluster.status = Some(crds::GpuRdmaClusterStatus {
        matched: 3,
        ..Default::default()
    });
    cluster.metadata.resource_version = Some("9".into());
    assert_eq!(essence::cluster(&cluster.clone().into()), before);
    cluster.metadata.generation = Some(2);
    assert_ne!(essence::cluster(&cluster.clone().into()), before);
}
