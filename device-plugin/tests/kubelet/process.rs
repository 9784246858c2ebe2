//! Point 27 and the plugin's life as a process.

use std::time::Duration;

use device_plugin::proto::{AllocateRequest, ContainerAllocateRequest, Empty};
use device_plugin::{doctor, kubelet};
use tonic::Code;
use tonic_prost::ProstCodec;

use crate::fake::Kubelet;
use crate::node::{Node, sockets};
use crate::sample::{self, RESOURCE};

#[tokio::test]
async fn kubelet_27_stops_without_an_empty_list_and_takes_its_sockets_away() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
    assert!(node.sockets().is_empty());
    let log = kubelet.log();
    assert!(
        log.lists.iter().all(|(_, devices)| devices.len() == 2),
        "{:?}",
        log.lists
    );
}

#[tokio::test]
async fn kubelet_27_stops_while_there_is_no_kubelet() {
    let node = Node::with(&sample::node_file(2));
    let plugin = node.start();
    tokio::time::sleep(Duration::from_millis(50)).await;
    plugin.stop().await;
}

/// A kubelet of a later release may ask for what there is not yet.
#[tokio::test]
async fn kubelet_27_refuses_a_call_that_it_does_not_know_and_goes_on() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    let socket = node.kubelet_dir().join(&node.sockets()[0]);
    let channel = kubelet::connect(socket).await.unwrap();
    for path in ["/v1beta1.DevicePlugin/Later", "/v2.DevicePlugin/Allocate"] {
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await.unwrap();
        let codec: ProstCodec<Empty, Empty> = ProstCodec::default();
        let path = http::uri::PathAndQuery::from_static(path);
        let call = client.unary(tonic::Request::new(Empty {}), path, codec);
        assert_eq!(call.await.unwrap_err().code(), Code::Unimplemented);
    }
    kubelet.api(RESOURCE).allocate(one(0)).await.unwrap();
    assert_eq!(kubelet.log().registrations.len(), 1);
    plugin.stop().await;
}

fn one(n: usize) -> AllocateRequest {
    let container = ContainerAllocateRequest {
        device_ids: sample::ids(&[n]),
    };
    AllocateRequest {
        container_requests: vec![container],
    }
}

#[tokio::test]
async fn sockets_of_a_killed_run_are_removed_at_the_start() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    drop(
        std::os::unix::net::UnixListener::bind(node.kubelet_dir().join("gpurdma-old.sock"))
            .unwrap(),
    );
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    assert!(!sockets(&node.kubelet_dir()).contains(&"gpurdma-old.sock".to_owned()));
    plugin.stop().await;
}

#[tokio::test]
async fn a_resource_that_comes_into_the_file_is_registered_and_one_that_leaves_is_closed() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    let mut file = sample::node_file(2);
    file.resources.push(sample::resource("rdma/gpu", 1));
    node.write(&file);
    kubelet.until_devices("rdma/gpu", 1).await;
    node.write(&sample::node_file(2));
    kubelet
        .until("one socket", |_| (node.sockets().len() == 1).then_some(()))
        .await;
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

/// Another plugin may have had the name in between, and the kubelet asks the one that registered last.
#[tokio::test]
async fn a_resource_that_comes_back_into_the_file_is_registered_anew() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    let mut without = sample::node_file(2);
    without.resources.clear();
    node.write(&without);
    kubelet
        .until("no socket", |_| node.sockets().is_empty().then_some(()))
        .await;
    node.write(&sample::node_file(2));
    let registrations = kubelet.until_registrations(2).await;
    assert_ne!(registrations[0].endpoint, registrations[1].endpoint);
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

#[tokio::test]
async fn doctor_asks_the_plugin_that_runs_without_disturbing_it() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    let checks = doctor::checks(&doctor::gather(&node.places()).await);
    assert_eq!(doctor::exit_code(&checks), 0, "{}", doctor::render(&checks));
    assert!(doctor::render(&checks).contains("serves 2 devices, 2 of them Healthy"));
    assert_eq!(kubelet.log().registrations.len(), 1);
    plugin.stop().await;
    let checks = doctor::checks(&doctor::gather(&node.places()).await);
    assert_eq!(doctor::exit_code(&checks), 1, "{}", doctor::render(&checks));
}
