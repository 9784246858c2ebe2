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
    assert!(seen.matters(&watcher::Event::Apply(node("a")), node_essence));
    let mut beat = node("a");
    beat.metadata.resource_version = Some("2".into());
    beat.status = Some(k8s_openapi::api::core::v1::NodeStatus::default());
    assert!(!seen.matters(&watcher::Event::Apply(beat), node_essence));
    assert!(seen.matters(&watcher::Event::Apply(node("b")), node_essence));
    assert!(seen.matters(&watcher::Event::Delete(node("b")), node_essence));
}

#[test]
fn pods_matter_while_they_ask_for_devices() {
    let mut seen = Seen::default();
    assert!(!seen.matters(&watcher::Event::Apply(pod("cpu")), pod_essence));
    assert!(!seen.matters(&watcher::Event::Delete(pod("cpu")), pod_essence));
    assert!(seen.matters(&watcher::Event::Apply(pod("rdma/gpudirect")), pod_essence));
    assert!(seen.matters(&watcher::Event::Delete(pod("rdma/gpudirect")), pod_essence));
}

#[test]
fn a_relist_is_compared_afresh() {
    let mut seen = Seen::default();
    assert!(!seen.matters(&watcher::Event::<Node>::Init, node_essence));
    assert!(seen.matters(&watcher::Event::InitApply(node("a")), node_essence));
    assert!(seen.matters(&watcher::Event::<Node>::InitDone, node_essence));
    assert!(!seen.matters(&watcher::Event::Apply(node("a")), node_essence));
}

#[test]
fn a_status_write_on_a_cluster_rings_nothing() {
    let mut cluster = GpuRdmaCluster::new("c", crds::GpuRdmaClusterSpec::default());
    let before = cluster_essence(&cluster);
    cluster.status = Some(crds::GpuRdmaClusterStatus {
        matched: 3,
        ..Default::default()
    });
    cluster.metadata.resource_version = Some("9".into());
    assert_eq!(cluster_essence(&cluster), before);
    cluster.metadata.generation = Some(2);
    assert_ne!(cluster_essence(&cluster), before);
}
