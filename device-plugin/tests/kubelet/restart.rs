//! Points 6 to 8: restarts of the kubelet and of the plugin, and lost streams.

use std::time::Duration;

use device_plugin::timing::Timing;

use crate::fake::Kubelet;
use crate::node::Node;
use crate::sample::{self, RESOURCE};

async fn running() -> (Node, Kubelet, crate::node::Plugin) {
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    (node, kubelet, plugin)
}

#[tokio::test]
async fn kubelet_06_registers_again_after_a_restart() {
    let (node, mut kubelet, plugin) = running().await;
    for _ in 0..3 {
        kubelet.kill();
        kubelet = Kubelet::start(&node.kubelet_dir());
        kubelet.until_devices(RESOURCE, 2).await;
    }
    assert_eq!(node.sockets().len(), 1);
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_06_registers_again_when_its_own_socket_vanishes() {
    let (node, kubelet, plugin) = running().await;
    std::fs::remove_file(node.kubelet_dir().join(&node.sockets()[0])).unwrap();
    kubelet.until_registrations(2).await;
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

/// The new socket takes the place of the old one in one step: there is no moment without `kubelet.sock`, the plugin's own
/// socket stays, and streams are given all the time in the world.
#[tokio::test]
async fn kubelet_06_tells_a_new_kubelet_socket_from_the_old_one() {
    let node = Node::with(&sample::node_file(2));
    let first = Kubelet::start(&node.kubelet_dir());
    let stream_grace = Duration::from_hours(1);
    let plugin = node.start_with(Timing {
        stream_grace,
        ..Node::timing()
    });
    first.until_devices(RESOURCE, 2).await;
    let second = Kubelet::replace(&node.kubelet_dir());
    second.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_06_follows_a_directory_that_is_made_anew() {
    let (node, kubelet, plugin) = running().await;
    kubelet.kill();
    std::fs::remove_dir_all(node.kubelet_dir()).unwrap();
    std::fs::create_dir(node.kubelet_dir()).unwrap();
    let kubelet = Kubelet::start(&node.kubelet_dir());
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_07_registers_again_when_the_stream_ends_and_no_other_comes() {
    let (node, kubelet, plugin) = running().await;
    kubelet.hang_up(RESOURCE);
    kubelet.until_registrations(2).await;
    kubelet.until_devices(RESOURCE, 2).await;
    assert_eq!(node.sockets().len(), 1);
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_08_lists_the_same_ids_after_a_restart_of_the_plugin() {
    let (node, kubelet, plugin) = running().await;
    let before = kubelet.devices(RESOURCE);
    plugin.stop().await;
    let plugin = node.start();
    kubelet.until_registrations(2).await;
    kubelet.until_devices(RESOURCE, 2).await;
    assert_eq!(kubelet.devices(RESOURCE), before);
    plugin.stop().await;
}
