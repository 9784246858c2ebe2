use super::*;
use crate::test_api::{answering, not_found};

fn object() -> Value {
    json!({"apiVersion": "gpurdma.dev/v1alpha1", "kind": "GpuRdmaNode",
           "metadata": {"name": "n1", "uid": "g1"}, "spec": {"cluster": "c"}})
}

fn decision(step: Step) -> Decision {
    Decision {
        node: "n1".into(),
        steps: vec![step],
        ..Decision::default()
    }
}

fn grant() -> Maintenance {
    Maintenance {
        granted_plan: "p1".into(),
        install_hash: "h1".into(),
        attempt: 1,
    }
}

#[tokio::test]
async fn a_grant_is_written_by_its_own_manager_to_the_object_that_was_read() {
    let (client, log) = answering(|_| (200, object()));
    let events = Events::new(client.clone(), "pod-0");
    carry_out(&client, &events, &decision(Step::Grant(grant())))
        .await
        .unwrap();
    let log = log.lock().unwrap();
    let patch = log.iter().find(|one| one.method == "PATCH").unwrap();
    assert!(patch.query.contains("fieldManager=gpurdma-rollout") && !patch.query.contains("force"));
    assert_eq!(patch.body["metadata"]["uid"], "g1");
    assert_eq!(
        patch.body["spec"],
        json!({"maintenance": {"grantedPlan": "p1", "installHash": "h1", "attempt": 1}})
    );
    assert!(
        log.iter()
            .any(|one| one.path.contains("/events") && one.body["reason"] == "MaintenanceGranted")
    );
}

#[tokio::test]
async fn a_node_that_is_gone_gets_no_grant() {
    let (client, log) = answering(|_| not_found());
    let events = Events::new(client.clone(), "pod-0");
    carry_out(&client, &events, &decision(Step::Grant(grant())))
        .await
        .unwrap();
    assert!(log.lock().unwrap().iter().all(|one| one.method == "GET"));
}

#[tokio::test]
async fn an_ended_grant_leaves_the_manager_with_nothing() {
    assert_eq!(grant_patch("n1", Some("g1"), None)["spec"], json!({}));
    let (client, log) = answering(|_| (200, object()));
    let events = Events::new(client.clone(), "pod-0");
    carry_out(&client, &events, &decision(Step::EndGrant(End::Completed)))
        .await
        .unwrap();
    let log = log.lock().unwrap();
    assert!(
        log.iter()
            .any(|one| one.body["reason"] == "MaintenanceCompleted"),
        "{log:?}"
    );
}

#[tokio::test]
async fn the_driver_label_names_the_cluster_that_has_the_node() {
    let (client, log) = answering(|_| (200, object()));
    let events = Events::new(client.clone(), "pod-0");
    carry_out(
        &client,
        &events,
        &decision(Step::DriverLabel { wanted: true }),
    )
    .await
    .unwrap();
    let log = log.lock().unwrap();
    let patch = log.iter().find(|one| one.method == "PATCH").unwrap();
    assert_eq!(patch.path, "/api/v1/nodes/n1");
    assert_eq!(
        patch.body,
        json!({"metadata": {"labels": {"gpurdma.dev/driver": "c"}}})
    );
}

#[tokio::test]
async fn a_lost_race_for_taints_is_a_conflict() {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "resourceVersion": "7"}});
    let refused = json!({"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422, "message": "test failed"});
    let (client, _log) = answering(move |one| {
        if one.method == "GET" {
            (200, node.clone())
        } else {
            (422, refused.clone())
        }
    });
    let events = Events::new(client.clone(), "pod-0");
    let error = carry_out(&client, &events, &decision(Step::Taint))
        .await
        .unwrap_err();
    assert_eq!(error.category(), crate::error::Category::Conflict);
}
