use serde_json::json;

use super::*;
use crate::validate::tests::cluster;

fn object(phase: Option<Phase>) -> GpuRdmaNode {
    let mut object = GpuRdmaNode::new("n1", crds::GpuRdmaNodeSpec::default());
    object.metadata.generation = Some(2);
    object.status = phase.map(|phase| crds::GpuRdmaNodeStatus {
        phase,
        observed_generation: Some(2),
        ..Default::default()
    });
    object
}

fn labelled(value: Option<&str>) -> NodeFacts {
    let labels = value
        .map(|value| (DRIVER_LABEL.to_owned(), value.to_owned()))
        .into_iter()
        .collect();
    NodeFacts {
        labels,
        ..NodeFacts::default()
    }
}

fn pod(resources: &[&str], driver: Option<DriverPod>) -> PodFacts {
    let resources = resources.iter().map(|name| (*name).to_owned()).collect();
    PodFacts {
        namespace: "ns".into(),
        name: "p".into(),
        node: "n1".into(),
        resources,
        plugin: false,
        driver,
        stays: None,
    }
}

fn driver_pod(hash: &str, ready: bool, deleting: bool) -> PodFacts {
    pod(
        &[],
        Some(DriverPod {
            cluster: "c".into(),
            template_hash: hash.into(),
            ready,
            deleting,
        }),
    )
}

fn container() -> Cluster {
    let container = json!({"repository": "r", "image": "i", "version": "1"});
    cluster(
        "c",
        &json!({"driver": {"source": "Container", "container": container}}),
    )
}

#[test]
fn the_driver_follows_label_pod_and_template() {
    let outdated = Driver::Outdated {
        namespace: "ns".into(),
        name: "p".into(),
    };
    let leftover = Driver::Leftover {
        namespace: "ns".into(),
        name: "p".into(),
    };
    let table = [
        (None, None, Driver::Missing),
        (None, Some(driver_pod("t", true, true)), Driver::Starting),
        (None, Some(driver_pod("t", true, false)), leftover),
        (Some("other"), None, Driver::Missing),
        (
            Some("other"),
            Some(driver_pod("t", true, false)),
            Driver::Unwanted,
        ),
        (Some("c"), None, Driver::Starting),
        (
            Some("c"),
            Some(driver_pod("t", false, false)),
            Driver::Starting,
        ),
        (
            Some("c"),
            Some(driver_pod("t", true, true)),
            Driver::Starting,
        ),
        (
            Some("c"),
            Some(driver_pod("t", true, false)),
            Driver::Current,
        ),
        (Some("c"), Some(driver_pod("old", true, false)), outdated),
    ];
    for (label, pod, expected) in table {
        let pods: Vec<_> = pod.into_iter().collect();
        let found = driver(
            &container(),
            Some("t"),
            &object(Some(Phase::Waiting)),
            &labelled(label),
            &pods,
        );
        assert_eq!(found, expected, "{label:?} {pods:?}");
    }
}

#[test]
fn no_driver_where_none_is_asked_for_or_nothing_would_use_it() {
    let existing = cluster("c", &json!({}));
    let of = |cluster: &Cluster, phase, label| {
        driver(cluster, Some("t"), &object(phase), &labelled(label), &[])
    };
    assert_eq!(of(&existing, Some(Phase::Ready), None), Driver::NotOurs);
    assert_eq!(
        of(&existing, Some(Phase::Ready), Some("c")),
        Driver::Unwanted
    );
    for phase in [None, Some(Phase::Pending), Some(Phase::NotApplicable)] {
        assert_eq!(of(&container(), phase, None), Driver::NotOurs, "{phase:?}");
    }
}

#[test]
fn pods_of_any_rdma_resource_hold_the_node() {
    let held = BTreeSet::from(["example.org/pair"]);
    for (resource, holds) in [
        ("example.org/pair", true),
        ("rdma/hca_shared", true),
        ("nvidia.com/gpu", false),
    ] {
        assert_eq!(
            !holders(&[pod(&[resource], None)], &held).is_empty(),
            holds,
            "{resource}"
        );
    }
}

#[test]
fn a_status_about_another_generation_is_not_fresh() {
    assert!(is_fresh(&object(Some(Phase::Ready))));
    assert!(!is_fresh(&object(None)));
    let mut changed = object(Some(Phase::Ready));
    changed.metadata.generation = Some(3);
    assert!(!is_fresh(&changed));
}
