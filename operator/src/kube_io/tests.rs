use super::*;

fn node(taints: &Value) -> Node {
    serde_json::from_value(
        json!({"metadata": {"name": "n1", "resourceVersion": "7"}, "spec": {"taints": taints}}),
    )
    .unwrap()
}

#[test]
fn a_taint_is_added_beside_those_of_others_and_only_to_what_was_read() {
    let patch = taint_patch(&node(&json!([{"key": "gpu", "effect": "NoExecute"}])), true).unwrap();
    assert_eq!(
        patch[0],
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"})
    );
    let keys: Vec<_> = patch[1]["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|taint| taint["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["gpu", MAINTENANCE_TAINT]);
}

#[test]
fn a_taint_is_removed_alone() {
    let taints = json!([{"key": MAINTENANCE_TAINT, "effect": "NoSchedule"}, {"key": "gpu", "effect": "NoExecute"}]);
    let patch = taint_patch(&node(&taints), false).unwrap();
    assert_eq!(
        patch[1]["value"],
        json!([{"key": "gpu", "effect": "NoExecute"}])
    );
}

#[test]
fn a_node_as_wanted_is_not_written() {
    assert_eq!(taint_patch(&node(&json!(null)), false), None);
    assert_eq!(
        taint_patch(
            &node(&json!([{"key": MAINTENANCE_TAINT, "effect": "NoSchedule"}])),
            true
        ),
        None
    );
}
