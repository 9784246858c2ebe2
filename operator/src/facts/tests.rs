use super::*;

fn pod(extra: &serde_json::Value) -> Pod {
    let mut value = serde_json::json!({
        "metadata": {
            "name": "train-0", "namespace": "ml",
            "labels": {"app": "train"}, "annotations": {"huge": "x"},
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "a", "image": "i", "resources": {"limits": {"rdma/gpudirect": "2", "cpu": "4"}}}],
            "initContainers": [{"name": "b", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    merge(&mut value, extra);
    serde_json::from_value(value).unwrap()
}

fn merge(base: &mut serde_json::Value, extra: &serde_json::Value) {
    match (base, extra) {
        (serde_json::Value::Object(base), serde_json::Value::Object(extra)) => {
            for (key, value) in extra {
                merge(
                    base.entry(key.clone()).or_insert(serde_json::Value::Null),
                    value,
                );
            }
        }
        (base, extra) => *base = extra.clone(),
    }
}

#[test]
fn extended_resources_come_from_all_containers() {
    let facts = PodFacts::of(&pod(&serde_json::json!({}))).unwrap();
    assert_eq!(facts.id(), "ml/train-0");
    assert_eq!(
        facts.resources,
        BTreeSet::from(["nvidia.com/gpu".to_owned(), "rdma/gpudirect".to_owned()])
    );
    assert_eq!(facts.driver, None);
}

#[test]
fn asking_for_none_of_a_resource_holds_nothing() {
    let none = serde_json::json!({"spec": {
        "containers": [{"name": "a", "resources": {
            "limits": {"rdma/gpudirect": "0"}, "requests": {"rdma/gpudirect": "0"},
        }}],
        "initContainers": null,
    }});
    assert_eq!(
        PodFacts::of(&pod(&none)).unwrap().resources,
        BTreeSet::new()
    );
}

fn driver_labels() -> serde_json::Value {
    serde_json::json!({NAME_LABEL: "gpu-rdma", MANAGED_BY_LABEL: "gpu-rdma-operator", COMPONENT_LABEL: "driver", DRIVER_LABEL: "c"})
}

#[test]
fn one_label_of_a_driver_makes_no_driver_pod() {
    for missing in [NAME_LABEL, MANAGED_BY_LABEL, COMPONENT_LABEL] {
        let mut labels = driver_labels();
        labels.as_object_mut().unwrap().remove(missing);
        let extra = serde_json::json!({"metadata": {"labels": labels}});
        assert_eq!(
            PodFacts::of(&pod(&extra)).unwrap().driver,
            None,
            "{missing}"
        );
    }
}

#[test]
fn a_pod_that_ended_or_has_no_node_is_no_fact() {
    for extra in [
        serde_json::json!({"status": {"phase": "Succeeded"}}),
        serde_json::json!({"status": {"phase": "Failed"}}),
        serde_json::json!({"spec": {"nodeName": null}}),
    ] {
        assert_eq!(PodFacts::of(&pod(&extra)), None, "{extra}");
    }
}

#[test]
fn stripping_changes_no_fact() {
    let driver = serde_json::json!({"metadata": {
        "labels": driver_labels(), "annotations": {TEMPLATE_HASH: "h1"},
    }});
    for extra in [serde_json::json!({}), driver] {
        let mut stripped = pod(&extra);
        strip_pod(&mut stripped);
        assert_eq!(PodFacts::of(&stripped), PodFacts::of(&pod(&extra)));
        assert!(!stripped.annotations().contains_key("huge"));
        assert!(
            stripped
                .spec
                .unwrap()
                .containers
                .iter()
                .all(|container| container.image.is_none())
        );
    }
}

#[test]
fn a_driver_pod_shows_its_template_and_readiness() {
    let extra = serde_json::json!({
        "metadata": {"labels": driver_labels(), "annotations": {TEMPLATE_HASH: "h1"}},
        "status": {"conditions": []},
    });
    let driver = PodFacts::of(&pod(&extra)).unwrap().driver.unwrap();
    assert_eq!(
        driver,
        DriverPod {
            cluster: "c".into(),
            template_hash: "h1".into(),
            ready: false,
            deleting: false
        }
    );
}

#[test]
fn a_stripped_node_keeps_labels_and_taints() {
    let mut node: Node = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "n1", "uid": "u1", "labels": {"a": "b"}, "annotations": {"c": "d", GPU_PLUGIN_WAS: "true"}},
        "spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": MAINTENANCE_TAINT, "effect": "NoSchedule"}]},
        "status": {"images": []},
    }))
    .unwrap();
    let before = NodeFacts::of(&node);
    strip_node(&mut node);
    assert_eq!(NodeFacts::of(&node), before);
    assert!(before.tainted);
    assert!(node.status.is_none() && node.annotations().keys().eq([GPU_PLUGIN_WAS]));
}

#[test]
fn a_stripped_node_keeps_what_takes_it_out_of_service() {
    for (unschedulable, ready, expected) in [
        (true, Some("True"), (true, false)),
        (false, Some("False"), (false, true)),
        (false, Some("Unknown"), (false, true)),
        (false, None, (false, false)),
    ] {
        let conditions: Vec<_> = ready
            .into_iter()
            .map(|status| serde_json::json!({"type": "Ready", "status": status}))
            .collect();
        let mut node: Node = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "n1"},
            "spec": {"unschedulable": unschedulable},
            "status": {"conditions": conditions},
        }))
        .unwrap();
        let before = NodeFacts::of(&node);
        assert_eq!((before.cordoned, before.not_ready), expected);
        strip_node(&mut node);
        assert_eq!(NodeFacts::of(&node), before);
    }
}

#[test]
fn a_stripped_node_keeps_its_own_addresses() {
    let mut node: Node = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "n1"},
        "status": {"addresses": [
            {"type": "Hostname", "address": "n1"},
            {"type": "InternalIP", "address": "10.0.0.5"},
            {"type": "InternalIP", "address": "fd00::5"},
        ]},
    }))
    .unwrap();
    strip_node(&mut node);
    let own = ["10.0.0.5", "fd00::5"].map(|one| one.parse().unwrap());
    assert_eq!(NodeFacts::of(&node).addresses, BTreeSet::from(own));
}

#[test]
fn what_keeps_a_pod_from_being_evicted_survives_stripping() {
    let owner = |kind: &str| {
        serde_json::json!({"ownerReferences": [
            {"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": true},
        ]})
    };
    let annotated = |key: &str, value: &str| serde_json::json!({"annotations": {key: value}});
    for (metadata, expected) in [
        (serde_json::json!({}), None),
        (owner("ReplicaSet"), None),
        (owner("DaemonSet"), Some(Stays::DaemonSet)),
        (annotated(MIRROR, "hash"), Some(Stays::Mirror)),
        (annotated(DO_NOT_DISRUPT, "true"), Some(Stays::DoNotDisrupt)),
        (annotated(DO_NOT_DISRUPT, "false"), None),
        (
            serde_json::json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            Some(Stays::Ending),
        ),
    ] {
        let mut pod = pod(&serde_json::json!({"metadata": metadata}));
        assert_eq!(PodFacts::of(&pod).unwrap().stays, expected, "{metadata}");
        strip_pod(&mut pod);
        assert_eq!(PodFacts::of(&pod).unwrap().stays, expected, "{metadata}");
    }
}
