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

fn hands<'a>(client: &'a Client, events: &'a Events) -> Hands<'a> {
    Hands {
        client,
        evictions: client,
        events,
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
    carry_out(hands(&client, &events), &decision(Step::Grant(grant())))
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
    carry_out(hands(&client, &events), &decision(Step::Grant(grant())))
        .await
        .unwrap();
    assert!(log.lock().unwrap().iter().all(|one| one.method == "GET"));
}

#[tokio::test]
async fn an_ended_grant_leaves_the_manager_with_nothing() {
    assert_eq!(grant_patch("n1", Some("g1"), None)["spec"], json!({}));
    let (client, log) = answering(|_| (200, object()));
    let events = Events::new(client.clone(), "pod-0");
    carry_out(
        hands(&client, &events),
        &decision(Step::EndGrant(End::Completed)),
    )
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
        hands(&client, &events),
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
    let error = carry_out(hands(&client, &events), &decision(Step::Taint))
        .await
        .unwrap_err();
    assert_eq!(error.category(), crate::error::Category::Conflict);
}

fn refused(code: u16) -> (u16, Value) {
    let cause = json!({"reason": "DisruptionBudget",
        "message": "The disruption budget train needs 1 healthy pods and has 1 currently"});
    let status = json!({"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "code": code,
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"causes": [cause]}});
    (code, status)
}

#[tokio::test]
async fn a_budget_that_refuses_is_named_in_the_record_and_in_an_event() {
    let (client, log) = answering(|one| match one.path.as_str() {
        path if path.ends_with("/pods/stays/eviction") => refused(429),
        path if path.ends_with("/pods/gone/eviction") => not_found(),
        path if path.ends_with("/eviction") => (
            201,
            json!({"kind": "Status", "status": "Success", "code": 201}),
        ),
        _ => (200, object()),
    });
    let events = Events::new(client.clone(), "pod-0");
    let pods = ["stays", "gone", "goes"].map(|name| ("ml".to_owned(), name.to_owned()));
    let round = Decision {
        record: Some(Record {
            rounds: 1,
            ..Record::default()
        }),
        ..decision(Step::Evict(pods.to_vec()))
    };
    carry_out(hands(&client, &events), &round).await.unwrap();
    let log = log.lock().unwrap();
    let written: Vec<_> = log
        .iter()
        .filter(|one| one.method == "PATCH" && one.path.ends_with("/gpurdmanodes/n1"))
        .map(|one| one.body["metadata"]["annotations"]["gpurdma.dev/rollout-state"].to_string())
        .collect();
    assert_eq!(written.len(), 2, "before the round and after it");
    assert!(written[0].contains("rounds") && !written[0].contains("refused"));
    assert!(
        written[1].contains("ml/stays: The disruption budget train needs 1 healthy pods"),
        "{written:?}"
    );
    let said = |reason: &str| {
        let of = |one: &&crate::test_api::Recorded| one.body["reason"] == reason;
        log.iter().filter(of).count()
    };
    assert_eq!((said("EvictionRefused"), said("PodEvicted")), (1, 2));
}

#[tokio::test]
async fn a_server_that_fails_is_no_refusal() {
    let (client, _log) = answering(|one| {
        if one.path.ends_with("/eviction") {
            (
                503,
                json!({"kind": "Status", "status": "Failure", "code": 503, "message": "down"}),
            )
        } else {
            (200, object())
        }
    });
    let events = Events::new(client.clone(), "pod-0");
    let step = Step::Evict(vec![("ml".into(), "a".into())]);
    let error = carry_out(hands(&client, &events), &decision(step))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("evict Pod ml/a"), "{error}");
}

#[tokio::test]
async fn what_is_remembered_is_written_before_the_step() {
    let (client, log) = answering(|_| (200, object()));
    let events = Events::new(client.clone(), "pod-0");
    let remembered = Decision {
        record: Some(Record {
            given_back: 1,
            ..Record::default()
        }),
        ..decision(Step::Grant(grant()))
    };
    carry_out(hands(&client, &events), &remembered)
        .await
        .unwrap();
    let log = log.lock().unwrap();
    let patches: Vec<_> = log.iter().filter(|one| one.method == "PATCH").collect();
    assert!(patches[0].body["metadata"]["annotations"].is_object());
    assert!(patches[1].body["spec"]["maintenance"].is_object());
}
