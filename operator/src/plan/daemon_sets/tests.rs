use serde_json::json;

use super::*;

#[test]
fn what_the_server_writes_otherwise_is_no_difference() {
    let desired = json!({"containers": [{
        "name": "agent",
        "env": [{"name": "NO_PROXY", "value": ""}],
        "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"rdma/x": "1"}},
    }]});
    let actual = json!({"restartPolicy": "Always", "containers": [{
        "name": "agent",
        "env": [{"name": "NO_PROXY"}],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"rdma/x": "1"}},
    }]});
    assert!(covers(&actual, &desired));
}

#[test]
fn another_amount_or_value_is_a_difference() {
    for (actual, desired) in [
        (
            json!({"limits": {"cpu": "1"}}),
            json!({"limits": {"cpu": "2"}}),
        ),
        (json!({"limits": {}}), json!({"limits": {"cpu": "2"}})),
        (
            json!({"limits": {"cpu": "?"}}),
            json!({"limits": {"cpu": "!"}}),
        ),
        (json!({}), json!({"limits": {"cpu": "2"}})),
        (json!({"name": "A"}), json!({"name": "A", "value": "1"})),
        (json!({"value": "1"}), json!({"value": ""})),
    ] {
        assert!(!covers(&actual, &desired), "{actual} {desired}");
    }
}
