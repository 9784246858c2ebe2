use super::*;
use crate::test_api::{Recorded, answering};

#[test]
fn only_our_finalizer_goes() {
    let both = ["other".to_owned(), FINALIZER.to_owned()];
    let patch = finalizer_patch(&both, Some("3")).unwrap();
    assert_eq!(
        patch,
        json!({"metadata": {"finalizers": ["other"], "resourceVersion": "3"}})
    );
    assert_eq!(finalizer_patch(&["other".to_owned()], Some("3")), None);
}

#[test]
fn only_labels_that_are_there_are_removed() {
    let mut node = NodeFacts::default();
    assert!(labels_to_remove(&node, false).is_empty());
    node.labels
        .insert(PLUGIN_LABEL.to_owned(), "true".to_owned());
    assert_eq!(
        labels_to_remove(&node, false),
        BTreeMap::from([(PLUGIN_LABEL, None)])
    );
}

/// Two nodes with both labels, and a driver pod on the first.
fn world(request: &Recorded) -> (u16, Value) {
    let node = |name: &str| json!({"metadata": {"name": name, "labels": {PLUGIN_LABEL: "true", DRIVER_LABEL: "c"}}});
    let list = |kind: &str, items: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {}, "items": items});
    let pod = json!({"metadata": {
            "name": "p", "namespace": "ns", "labels": DRIVER_LABELS.into_iter().collect::<BTreeMap<_, _>>(),
        }, "spec": {"nodeName": "n1", "containers": []}});
    let answer = match request.path.as_str() {
        "/api/v1/nodes" => list("NodeList", json!([node("n1"), node("n2")])),
        "/api/v1/namespaces/ns/pods" => list("PodList", json!([pod])),
        _ => {
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {}})
        }
    };
    (200, answer)
}

#[tokio::test]
async fn the_driver_label_stays_beside_a_driver_pod() {
    let (client, log) = answering(world);
    clean_nodes(&client, "ns").await.unwrap();
    let log = log.lock().unwrap();
    let patches: Vec<_> = log
        .iter()
        .filter(|one| one.method == "PATCH")
        .map(|one| (one.path.as_str(), one.body["metadata"]["labels"].clone()))
        .collect();
    assert_eq!(
        patches,
        [
            ("/api/v1/nodes/n1", json!({PLUGIN_LABEL: null})),
            (
                "/api/v1/nodes/n2",
                json!({PLUGIN_LABEL: null, DRIVER_LABEL: null})
            ),
        ]
    );
}
