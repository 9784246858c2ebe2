//! The agent's loop against an API server: what it does between two turns.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::cluster::Mode;
use crds::node::GpuRdmaNodeSpec;
use crds::{GpuRdmaNode, GpuRdmaNodeStatus};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use node_agent::run::run;
use node_agent::settings::NODE_FILE;
use serde_json::json;

use crate::ask::{MACHINE, devices};
use crate::common::{Answers, Node};

/// Ten times what is promised: a look every second and a turn.
const DEADLINE: Duration = Duration::from_secs(20);

/// The statuses that were written.
type Written = Arc<Mutex<Vec<GpuRdmaNodeStatus>>>;

fn object() -> GpuRdmaNode {
    let spec = GpuRdmaNodeSpec {
        mode: Mode::Enforce,
        ..GpuRdmaNodeSpec::default()
    };
    let mut node = GpuRdmaNode::new("node-0", spec);
    node.metadata.uid = Some("uid-1".to_owned());
    node.metadata.resource_version = Some("1".to_owned());
    node
}

/// An API server with one object: it lists it, shows no event of it, and takes its status.
fn api_server() -> (Client, Written) {
    let written = Written::default();
    let kept = Arc::clone(&written);
    let service = tower::service_fn(move |request: Request<Body>| {
        let kept = Arc::clone(&kept);
        async move {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=");
            if is_watch {
                std::future::pending::<()>().await;
            }
            let answer = if request.method() == Method::PATCH {
                let body = request.into_body().collect_bytes().await.unwrap();
                let patch: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let status: GpuRdmaNodeStatus =
                    serde_json::from_value(patch["status"].clone()).unwrap();
                kept.lock().unwrap().push(status.clone());
                let mut node = object();
                node.status = Some(status);
                json!(node)
            } else {
                json!({
                    "apiVersion": "gpurdma.dev/v1alpha1",
                    "kind": "GpuRdmaNodeList",
                    "metadata": { "resourceVersion": "1" },
                    "items": [object()],
                })
            };
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            Ok::<_, std::convert::Infallible>(Response::new(body))
        }
    });
    (Client::new(service, "default"), written)
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let wait = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, wait).await.is_ok();
    assert!(in_time, "{what}");
}

/// As after the driver was bound anew: the NIC has another number, and the kernel's node is another file.
fn move_uverbs(node: &Node, from: u32, to: u32) {
    let path = |number: u32| {
        let class = format!("/sys/class/infiniband_verbs/uverbs{number}");
        node.settings.root.join(&class)
    };
    node.put(&format!("/dev/infiniband/uverbs{to}"), "");
    std::fs::rename(path(from), path(to)).unwrap();
    node.remove(&format!("/dev/infiniband/uverbs{from}"));
}

fn numbers(node: &Node) -> Vec<u32> {
    let nics = devices(node).into_iter().flat_map(|device| device.nics);
    nics.filter_map(|nic| nic.uverbs).collect()
}

#[tokio::test]
async fn a_uverbs_number_that_moves_is_in_the_node_file_soon_and_in_no_status() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let (client, written) = api_server();
    let loop_of_agent = tokio::spawn(run(client, node.settings.clone(), "node-0".to_owned()));
    let statuses = || written.lock().unwrap().clone();
    until("first status", || !statuses().is_empty()).await;
    let file = node.settings.root.join(NODE_FILE);
    until("node file", || file.exists()).await;
    // The watch has seen the numbers as they were.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (first, before) = (numbers(&node)[0], statuses());
    move_uverbs(&node, first, 77);
    until("number 77", || numbers(&node)[0] == 77).await;
    let cdi = node.read(&node.settings.cdi_file());
    assert!(
        cdi.contains("/dev/infiniband/uverbs77\"")
            && !cdi.contains(&format!("/dev/infiniband/uverbs{first}\"")),
        "{cdi}"
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(statuses(), before, "nothing was written to the API");
    loop_of_agent.abort();
}
