use serde_json::json;

use super::*;
use crate::components::{COMPONENT_LABEL, MANAGED_BY_LABEL, MANAGER, NAME, NAME_LABEL};
use crate::test_api::{Recorded, answering, not_found};

fn driver_pod(namespace: &str) -> Arc<Pod> {
    let labels = json!({COMPONENT_LABEL: "driver", MANAGED_BY_LABEL: MANAGER, NAME_LABEL: NAME});
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": namespace, "labels": labels},
            "spec": {"nodeName": "n1", "containers": [
                {"name": "c", "resources": {"limits": {"rdma/gpudirect": "1"}}},
            ]},
        }))
        .unwrap(),
    )
}

#[test]
fn a_driver_pod_of_another_namespace_is_a_tenants_pod() {
    let pods = by_node(&[driver_pod("tenant"), driver_pod("ours")], "ours");
    let driver: Vec<_> = pods["n1"]
        .iter()
        .map(|pod| (pod.namespace.as_str(), pod.driver.is_some()))
        .collect();
    assert_eq!(driver, [("ours", true), ("tenant", false)]);
}

/// A list of each kind; of ours one object can be read and one cannot.
fn lists(request: &Recorded) -> (u16, serde_json::Value) {
    if request.query.contains("watch=true") {
        return not_found();
    }
    let named =
        |name: &str, spec: serde_json::Value| json!({"metadata": {"name": name}, "spec": spec});
    let items = match request.path.rsplit('/').next() {
        Some("gpurdmaclusters") => vec![
            named("bad", json!({"priority": "high"})),
            named("good", json!({})),
        ],
        Some("gpurdmanodes") => vec![
            named("n1", json!({"paused": "maybe"})),
            named("n2", json!({"cluster": "good"})),
        ],
        Some("nodes") => vec![named("n1", json!({})), named("n2", json!({}))],
        _ => Vec::new(),
    };
    (
        200,
        json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}),
    )
}

#[tokio::test]
async fn an_object_that_cannot_be_read_hides_no_other() {
    let (client, _log) = answering(lists);
    let bell = Arc::new(tokio::sync::Notify::new());
    let (stores, tasks) = Stores::start(&client, "ns", &bell);
    tokio::time::timeout(
        std::time::Duration::from_secs(10),
        stores.wait_until_ready(),
    )
    .await
    .unwrap()
    .unwrap();
    let snapshot = gather(&stores, "ns").unwrap();
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let clusters: Vec<_> = snapshot.clusters.iter().map(|one| one.name_any()).collect();
    assert_eq!(clusters, ["good"]);
    assert_eq!(snapshot.validated().frozen(), BTreeSet::from(["bad"]));
    assert_eq!(snapshot.gpu_nodes.keys().collect::<Vec<_>>(), ["n2"]);
    assert_eq!(snapshot.nodes.keys().collect::<Vec<_>>(), ["n2"]);
    assert_eq!(snapshot.skipped, BTreeSet::from(["n1".to_owned()]));
}
