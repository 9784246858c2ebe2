use serde_json::json;

use super::*;
use crate::components::{COMPONENT_LABEL, MANAGED_BY_LABEL, MANAGER, NAME, NAME_LABEL};

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
