use serde_json::json;

use super::*;

#[path = "../../../crds/tests/hostile/mod.rs"]
mod texts;

/// The agent refuses the rest: it never comes to a container's or a selector's texts.
#[test]
fn what_breaks_out_of_a_text_that_ends_here_is_refused() {
    let ends_here = [
        "nodeSelector",
        "upgrade",
        "driver.container",
        "devicePlugin",
    ];
    for spec in texts::specs() {
        check(&object("c", &spec)).unwrap();
        for (place, spec) in texts::hostile(&spec) {
            let read = serde_json::from_value::<crds::GpuRdmaClusterSpec>(spec.clone());
            if ends_here.iter().any(|own| place.starts_with(own)) && read.is_ok() {
                assert!(check(&object("c", &spec)).is_err(), "{place}: {spec}");
            }
        }
    }
}

/// A cluster object from the JSON of its spec; the name is its place in time too.
pub(crate) fn object(name: &str, spec: &serde_json::Value) -> Arc<GpuRdmaCluster> {
    Arc::new(
        serde_json::from_value(json!({
            "apiVersion": "gpurdma.dev/v1alpha1",
            "kind": "GpuRdmaCluster",
            "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1,
                         "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": spec,
        }))
        .unwrap(),
    )
}

/// The cluster of a spec that makes sense.
pub(crate) fn cluster(name: &str, spec: &serde_json::Value) -> Cluster {
    check(&object(name, spec)).unwrap()
}

fn node(labels: &[(&str, &str)]) -> NodeFacts {
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    NodeFacts {
        labels,
        ..NodeFacts::default()
    }
}

#[test]
fn selectors_match_as_kubernetes_does() {
    let table = [
        (json!({}), true),
        (json!({"matchLabels": {"pool": "gpu"}}), true),
        (json!({"matchLabels": {"pool": "cpu"}}), false),
        (
            json!({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gpu", "x"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["gpu"]}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "absent", "operator": "NotIn", "values": ["gpu"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "pool", "operator": "Exists"}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]}),
            false,
        ),
        (
            json!({"matchLabels": {"pool": "gpu"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]}),
            false,
        ),
    ];
    let node = node(&[(OS_LABEL, "linux"), ("pool", "gpu")]);
    for (selector, expected) in table {
        let cluster = cluster("c", &json!({"nodeSelector": selector}));
        assert_eq!(cluster.matches(&node), expected, "{selector}");
    }
}

#[test]
fn only_linux_nodes_match() {
    let cluster = cluster("c", &json!({}));
    assert!(!cluster.matches(&node(&[(OS_LABEL, "windows")])));
    assert!(!cluster.matches(&node(&[])));
    assert_eq!(cluster.selector_text(), "kubernetes.io/os=linux");
}

#[test]
fn bad_specifications_name_field_and_remedy() {
    let table = [
        (
            json!({"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}}),
            "Near",
        ),
        (
            json!({"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            "give at least one",
        ),
        (
            json!({"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}),
            "give none",
        ),
        (
            json!({"nodeSelector": {"matchLabels": {"pool ": "gpu"}}}),
            "the key \"pool \"",
        ),
        (
            json!({"nodeSelector": {"matchLabels": {"pool": "gpu nodes"}}}),
            "the value \"gpu nodes\"",
        ),
        (
            json!({"nodeSelector": {"matchExpressions": [{"key": "a/b/c", "operator": "Exists"}]}}),
            "the key \"a/b/c\"",
        ),
        (
            json!({"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "-"]}]}}),
            "the value \"-\"",
        ),
        (
            json!({"driver": {"source": "Container"}}),
            "name repository, image and version",
        ),
        (json!({"upgrade": {"maxUnavailable": "some"}}), "25%"),
    ];
    for (spec, expected) in table {
        let error = check(&object("c", &spec)).unwrap_err().to_string();
        assert!(
            error.starts_with("spec.") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn an_invalid_cluster_does_not_hide_the_others() {
    let bad = json!({"driver": {"source": "Container"}});
    let validated = validate(&[
        object("z", &json!({})),
        object("b", &bad),
        object("a", &json!({})),
    ]);
    let names: Vec<_> = validated
        .clusters
        .iter()
        .map(|cluster| cluster.name.as_str())
        .collect();
    assert_eq!(names, ["a", "z"]);
    assert_eq!(validated.frozen(), BTreeSet::from(["b"]));
    assert!(matches!(validated.reason("b"), Some(Invalid::NoContainer)));
}

#[test]
fn only_install_inputs_change_the_install_hash() {
    let base = cluster("c", &json!({})).install_hash;
    let same = cluster(
        "d",
        &json!({"mode": "Enforce", "priority": 9, "nodeSelector": {"matchLabels": {"a": "b"}}}),
    );
    assert_eq!(same.install_hash, base);
    assert_ne!(
        cluster("c", &json!({"gpuDirect": {"mode": "Auto"}})).install_hash,
        base
    );
}

#[test]
fn a_wait_has_a_unit_or_no_end() {
    let of = |text: &str| wait_timeout(Some(text));
    assert_eq!(of("1h30m").unwrap(), Some(SignedDuration::from_mins(90)));
    assert_eq!(wait_timeout(None).unwrap(), None);
    for text in ["30", "", "0s", "-5m", "soon"] {
        let error = of(text).unwrap_err().to_string();
        assert!(
            error.contains("spec.upgrade.waitTimeout") && error.contains("1h30m"),
            "{error}"
        );
    }
}

#[test]
fn ranges_are_of_hosts_and_do_not_overlap() {
    let checked = |cidrs: &[&str]| {
        let addresses: Vec<_> = (0..)
            .zip(cidrs)
            .map(|(rail, cidr): (u32, _)| json!({"rail": rail, "cidr": cidr}))
            .collect();
        check(&object("c", &json!({"fabric": {"addresses": addresses}})))
    };
    let cluster = checked(&["10.10.0.9/16", "fd00:10::/64"]).unwrap();
    let ranges: Vec<_> = cluster.ranges.values().map(ToString::to_string).collect();
    assert_eq!(ranges, ["10.10.0.0/16", "fd00:10::/64"]);
    for cidr in [
        "10.10.0.0",
        "127.0.0.0/8",
        "224.0.0.0/8",
        "ff02::/16",
        "0.0.0.0/0",
        "::/64",
    ] {
        let wrong = checked(&[cidr]).unwrap_err().to_string();
        assert!(
            wrong.contains("of rail 0") && wrong.contains(cidr),
            "{wrong}"
        );
    }
    for pair in [["10.0.0.0/8", "10.1.0.0/16"], ["10.1.0.0/16", "10.0.0.0/8"]] {
        let wrong = checked(&pair).unwrap_err().to_string();
        assert!(
            wrong.contains("overlap") && wrong.contains("10.1.0.0/16"),
            "{wrong}"
        );
    }
}
