use std::collections::BTreeMap;

use crds::names::PLUGIN_LABEL;
use serde_json::{Value, json};

use super::*;
use crate::events::Events;
use crate::plan::LabelChange;
use crate::rollout::Step;
use crate::test_api::{Log, Recorded, answering, not_found};

fn refusal(code: u16) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "reason": "Refused", "code": code, "message": "no"}),
    )
}

/// The same for every node: an object, a label and a step of maintenance.
fn changes(nodes: &[String]) -> Changes {
    Changes {
        gpu_nodes: nodes
            .iter()
            .map(|node| GpuRdmaNode::new(node, crds::GpuRdmaNodeSpec::default()))
            .collect(),
        labels: nodes
            .iter()
            .map(|node| LabelChange {
                node: node.clone(),
                labels: BTreeMap::from([(PLUGIN_LABEL, Some("true".to_owned()))]),
            })
            .collect(),
        maintenance: nodes
            .iter()
            .map(|node| Decision {
                node: node.clone(),
                steps: vec![Step::Taint],
                ..Decision::default()
            })
            .collect(),
        ..Changes::default()
    }
}

async fn applied(
    changes: Changes,
    answer: impl Fn(&Recorded) -> (u16, Value) + Send + 'static,
) -> (Outcome, Log) {
    let (client, log) = answering(answer);
    let events = Events::new(client.clone(), "pod-0");
    let hands = Hands {
        client: &client,
        evictions: &client,
        events: &events,
    };
    (apply(hands, "ns", changes).await, log)
}

fn requests(log: &Log, end: &str) -> usize {
    let log = log.lock().unwrap();
    log.iter().filter(|one| one.path.ends_with(end)).count()
}

fn named(count: usize) -> Vec<String> {
    (1..=count).map(|index| format!("n{index}")).collect()
}

#[tokio::test]
async fn a_failing_node_ends_nothing_for_the_others() {
    let refused = ["/gpurdmanodes/n1", "/gpurdmanodes/n2", "/nodes/n3"];
    let (outcome, log) = applied(changes(&named(5)), move |request| {
        match refused.iter().find(|end| request.path.ends_with(*end)) {
            Some(_) => refusal(403),
            None if request.method == "GET" => not_found(),
            None => (200, request.body_as_object()),
        }
    })
    .await;
    assert_eq!((outcome.applied.assigned, outcome.applied.labelled), (3, 2));
    let maintained: Vec<_> = outcome.maintained.iter().map(|one| &one.node).collect();
    assert_eq!(maintained, ["n4", "n5"]);
    assert_eq!(
        requests(&log, "/nodes/n1"),
        0,
        "nothing follows from what failed"
    );
    let message = outcome.failure.unwrap().chain();
    assert!(
        message
            .starts_with("3 objects could not be written: n1, n2, n3: cannot apply GpuRdmaNode n1"),
        "{message}"
    );
}

#[tokio::test]
async fn one_failure_is_told_as_it_is() {
    let (outcome, _) = applied(changes(&named(1)), |_| refusal(409)).await;
    let failure = outcome.failure.unwrap();
    assert!(matches!(failure, Error::Api { .. }), "{failure}");
}

#[tokio::test]
async fn a_server_that_answers_nobody_is_not_asked_for_every_node() {
    let (outcome, log) = applied(changes(&named(200)), |_| refusal(503)).await;
    assert!(outcome.failure.is_some());
    let asked = log.lock().unwrap().len();
    assert!(asked < 3 * PARALLEL, "{asked} requests");
}

#[tokio::test]
async fn nodes_are_left_alone_while_a_daemon_set_cannot_let_go_of_its_pods() {
    let prune = Prune {
        name: "gpu-rdma-driver-c".into(),
        keep_pods: true,
    };
    let changes = Changes {
        prune: vec![prune],
        ..changes(&named(1))
    };
    let (outcome, log) = applied(changes, |_| refusal(403)).await;
    assert!(outcome.failure.is_some());
    assert_eq!(log.lock().unwrap().len(), 1);
}
