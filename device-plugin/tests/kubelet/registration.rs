//! Points 1 to 4: how a resource gets registered.

use std::time::Duration;

use device_plugin::proto::OPTIONS;

use crate::fake::Kubelet;
use crate::node::Node;
use crate::sample::{self, RESOURCE};

/// One thread for the plugin and the kubelet: a plugin that waited for the answer before it served would never get it.
#[tokio::test]
async fn kubelet_01_serves_before_it_registers() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_02_registers_with_version_bare_file_name_and_the_options_it_serves() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_registrations(1).await;
    let (request, served) = kubelet.log().registrations.remove(0);
    assert_eq!(
        (request.version.as_str(), request.resource_name.as_str()),
        ("v1beta1", RESOURCE)
    );
    assert!(
        !request.endpoint.contains('/') && request.endpoint.starts_with("gpurdma-"),
        "{}",
        request.endpoint
    );
    assert_eq!((request.options, served), (Some(OPTIONS), OPTIONS));
    assert!(served.get_preferred_allocation_available && !served.pre_start_required);
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_02_registers_every_resource_on_a_socket_of_its_own() {
    let mut file = sample::node_file(2);
    file.resources.push(sample::resource("rdma/gpu", 3));
    let node = Node::with(&file);
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    kubelet.until_devices("rdma/gpu", 3).await;
    assert_eq!(node.sockets().len(), 2);
    plugin.stop().await;
}

/// The kubelet of these tests drops the current client when an old stream ends.
#[tokio::test]
async fn kubelet_03_uses_a_fresh_socket_name_and_survives_the_end_of_the_old_stream() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    let mut endpoints = std::collections::BTreeSet::new();
    for round in 1..4 {
        kubelet.until_devices(RESOURCE, 2).await;
        let endpoint = kubelet
            .until_registrations(round)
            .await
            .pop()
            .unwrap()
            .endpoint;
        assert!(
            endpoints.insert(endpoint.clone()),
            "{endpoint} was used before"
        );
        std::fs::remove_file(node.kubelet_dir().join(&endpoint)).unwrap();
        kubelet
            .until("end of the old stream", |k| {
                k.log().ended.contains(&endpoint).then_some(())
            })
            .await;
        kubelet.until_registrations(round + 1).await;
    }
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

/// The new one of an update starts before the old one is gone. Two that registered the same resource would take it from
/// each other without end, and the old stream's end would take the new registration with it: so it waits.
#[tokio::test]
async fn kubelet_03_a_second_instance_waits_and_outlives_the_end_of_the_first() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let first = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    let endpoint = node.sockets().remove(0);
    let second = node.start();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kubelet.log().registrations.len(), 1);
    first.stop().await;
    kubelet
        .until("the end of the first one's stream", |k| {
            k.log().ended.contains(&endpoint).then_some(())
        })
        .await;
    kubelet.until_registrations(2).await;
    kubelet.until_devices(RESOURCE, 2).await;
    assert_eq!(node.sockets().len(), 1);
    second.stop().await;
}

#[tokio::test]
async fn kubelet_04_waits_for_a_kubelet_that_comes_later() {
    let node = Node::with(&sample::node_file(2));
    let plugin = node.start();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(
        node.sockets().is_empty(),
        "nothing to serve before there is a kubelet"
    );
    let kubelet = Kubelet::start(&node.kubelet_dir());
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_04_tries_again_after_a_refusal() {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start_refusing(&node.kubelet_dir(), 3);
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    assert_eq!(
        node.sockets().len(),
        1,
        "the sockets of refused attempts are gone"
    );
    plugin.stop().await;
}

/// Right after a registration, and in the middle of one. Nothing but the socket itself tells that it is another one.
#[tokio::test]
async fn kubelet_04_registers_again_when_the_socket_is_made_anew_at_once() {
    let node = Node::with(&sample::node_file(2));
    let stream_grace = Duration::from_hours(1);
    let mut kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start_with(device_plugin::timing::Timing {
        stream_grace,
        ..Node::timing()
    });
    for pause in [10, 0, 1] {
        kubelet.until_registrations(1).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        kubelet.kill();
        kubelet = Kubelet::start(&node.kubelet_dir());
    }
    kubelet
        .until("a look at kubelet.sock", |k| k.dialled().then_some(()))
        .await;
    let next = Kubelet::replace(&node.kubelet_dir());
    next.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
    kubelet.kill();
}

#[tokio::test]
async fn kubelet_04_tries_again_when_the_socket_of_a_dead_kubelet_is_left() {
    let node = Node::with(&sample::node_file(2));
    Kubelet::start(&node.kubelet_dir()).kill();
    let plugin = node.start();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let kubelet = Kubelet::start(&node.kubelet_dir());
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

#[tokio::test]
async fn without_a_good_node_file_nothing_is_registered_until_there_is_one() {
    let node = Node::new();
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    let mut other = sample::node_file(2);
    other.boot_id = "another".to_owned();
    for text in ["{".to_owned(), other.to_json()] {
        node.write_text(&text);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(
            kubelet.log().registrations.is_empty(),
            "registered with {text}"
        );
    }
    node.write(&sample::node_file(2));
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}
