use crds::GpuRdmaCluster;
use kube::ResourceExt;
use serde_json::json;

use super::*;

fn guarded(priority: &serde_json::Value) -> Guarded<GpuRdmaCluster> {
    serde_json::from_value(json!({
        "apiVersion": "gpurdma.dev/v1alpha1", "kind": "GpuRdmaCluster",
        "metadata": {"name": "c", "uid": "u"}, "spec": {"priority": priority},
    }))
    .unwrap()
}

#[test]
fn what_can_be_read_is_the_object() {
    let mut good = guarded(&json!(3));
    good.labels_mut().insert("a".into(), "b".into());
    let read = good.read().unwrap();
    assert_eq!((read.spec.priority, read.labels()["a"].as_str()), (3, "b"));
}

#[test]
fn what_cannot_be_read_has_its_name_and_says_why() {
    let mut bad = guarded(&json!("high"));
    bad.labels_mut().insert("a".into(), "b".into());
    assert_eq!(
        (bad.name_any().as_str(), bad.uid().as_deref()),
        ("c", Some("u"))
    );
    let why = bad.read().unwrap_err();
    assert!(why.contains("high"), "{why}");
}
