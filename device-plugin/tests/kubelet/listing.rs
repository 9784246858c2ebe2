//! Points 9 to 15: what `ListAndWatch` says, and when.

use std::time::Duration;

use device_plugin::proto::{Empty, HEALTHY, UNHEALTHY};
use prost::Message;

use crate::fake::{Api, Kubelet};
use crate::node::{Node, Plugin};
use crate::sample::{self, RESOURCE};

async fn running(file: &topology::node_file::NodeFile) -> (Node, Kubelet, Plugin) {
    let node = Node::with(file);
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet
        .until_devices(RESOURCE, file.resources[0].devices.len())
        .await;
    (node, kubelet, plugin)
}

async fn until_health(kubelet: &Kubelet, health: &[&str]) {
    let same = |k: &Kubelet| k.health(RESOURCE).filter(|seen| seen == health).map(|_| ());
    kubelet.until(&format!("{health:?}"), same).await;
}

fn without_patience(count: usize) -> topology::node_file::NodeFile {
    let mut file = sample::node_file(count);
    file.resources[0].hold_down_seconds = 0;
    file.resources[0].stable_up_seconds = 0;
    file
}

#[tokio::test]
async fn kubelet_09_sends_the_first_list_at_once_even_if_it_is_empty() {
    let (_node, kubelet, plugin) = running(&sample::node_file(0)).await;
    assert_eq!(kubelet.log().lists.len(), 1);
    plugin.stop().await;
}

async fn open(mut api: Api) -> tonic::Streaming<device_plugin::proto::ListAndWatchResponse> {
    api.list_and_watch(Empty {}).await.unwrap().into_inner()
}

#[tokio::test]
async fn kubelet_09_tells_every_stream_that_is_open() {
    let (node, kubelet, plugin) = running(&sample::node_file(2)).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = open(kubelet.api(RESOURCE)).await;
        assert_eq!(stream.message().await.unwrap().unwrap().devices.len(), 2);
        streams.push(stream);
    }
    drop(streams.remove(1));
    node.write(&sample::node_file(3));
    for stream in &mut streams {
        assert_eq!(stream.message().await.unwrap().unwrap().devices.len(), 3);
    }
    kubelet.until_devices(RESOURCE, 3).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_10_marks_unhealthy_what_leaves_the_file_or_is_not_admitted() {
    let (node, kubelet, plugin) = running(&sample::node_file(3)).await;
    let mut file = sample::node_file(2);
    file.resources[0].devices[0].admitted = false;
    node.write(&file);
    until_health(&kubelet, &[UNHEALTHY, HEALTHY, UNHEALTHY]).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_10_marks_unhealthy_what_is_another_nics_until_a_new_file_comes() {
    let (node, kubelet, plugin) = running(&sample::node_file(2)).await;
    node.verbs(0, "mlx5_1");
    until_health(&kubelet, &[UNHEALTHY, HEALTHY]).await;
    let mut file = sample::node_file(2);
    file.resources[0].devices[0].nics[0].uverbs = Some(7);
    node.write(&file);
    until_health(&kubelet, &[HEALTHY; 2]).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_10_marks_everything_unhealthy_when_the_file_is_gone_or_of_another_boot() {
    let (node, kubelet, plugin) = running(&sample::node_file(2)).await;
    std::fs::remove_file(node.node_file()).unwrap();
    until_health(&kubelet, &[UNHEALTHY; 2]).await;
    node.write(&sample::node_file(2));
    until_health(&kubelet, &[HEALTHY; 2]).await;
    node.boot("another");
    until_health(&kubelet, &[UNHEALTHY; 2]).await;
    assert_eq!(
        kubelet.log().registrations.len(),
        1,
        "changes need no registration"
    );
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_10_keeps_the_last_good_file_when_a_new_one_cannot_be_parsed() {
    let (node, kubelet, plugin) = running(&sample::node_file(2)).await;
    node.write_text("{ broken");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kubelet.health(RESOURCE).unwrap(), [HEALTHY; 2]);
    assert_eq!(kubelet.log().lists.len(), 1);
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_10_drops_a_device_after_the_quiet_time() {
    let node = Node::with(&sample::node_file(3));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let quiet = Duration::from_millis(300);
    let plugin = node.start_with(device_plugin::timing::Timing {
        quiet,
        ..Node::timing()
    });
    kubelet.until_devices(RESOURCE, 3).await;
    node.write(&sample::node_file(2));
    until_health(&kubelet, &[HEALTHY, HEALTHY, UNHEALTHY]).await;
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_11_sends_a_link_that_goes_down_and_comes_back() {
    let (node, kubelet, plugin) = running(&without_patience(2)).await;
    node.port(1, "1: DOWN");
    until_health(&kubelet, &[HEALTHY, UNHEALTHY]).await;
    node.port(1, "4: ACTIVE");
    until_health(&kubelet, &[HEALTHY; 2]).await;
    plugin.stop().await;
}

/// Thirty seconds of patience, and ports that are looked at every twenty milliseconds.
#[tokio::test]
async fn kubelet_11_says_nothing_of_a_flap() {
    let (node, kubelet, plugin) = running(&sample::node_file(2)).await;
    for state in ["1: DOWN", "4: ACTIVE", "2: INIT", "1: DOWN", "4: ACTIVE"] {
        node.port(1, state);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(kubelet.health(RESOURCE).unwrap(), [HEALTHY; 2]);
    assert_eq!(kubelet.log().lists.len(), 1);
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_11_keeps_a_gpu_whose_nic_is_down_where_it_should() {
    let mut file = without_patience(2);
    file.resources[0].unhealthy_on_nic_down = false;
    let mut strict = without_patience(2);
    strict.resources[0].name = "rdma/strict".to_owned();
    file.resources.append(&mut strict.resources);
    let (node, kubelet, plugin) = running(&file).await;
    node.port(1, "1: DOWN");
    let seen = |k: &Kubelet| {
        k.health("rdma/strict")
            .filter(|health| health == &[HEALTHY, UNHEALTHY])
    };
    kubelet.until("the port in the other resource", seen).await;
    assert_eq!(kubelet.health(RESOURCE).unwrap(), [HEALTHY; 2]);
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_11_takes_a_port_that_cannot_be_read_for_no_fault() {
    let (node, kubelet, plugin) = running(&without_patience(2)).await;
    node.port(1, "nonsense");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kubelet.log().lists.len(), 1);
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_12_sends_nothing_when_nothing_changed_and_the_list_again_to_a_new_stream() {
    let (node, kubelet, plugin) = running(&sample::node_file(2)).await;
    let mut newer = sample::node_file(2);
    newer.generation = 2;
    node.write(&newer);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kubelet.log().lists.len(), 1);
    let again = open(kubelet.api(RESOURCE))
        .await
        .message()
        .await
        .unwrap()
        .unwrap()
        .devices;
    assert_eq!(Some(again), kubelet.devices(RESOURCE));
    plugin.stop().await;
}

/// A resource of `count` devices of one NIC, whose ids have `bytes` bytes each.
fn replicas(count: usize, bytes: usize) -> topology::node_file::NodeFile {
    let mut file = sample::node_file(1);
    let mut replica = file.resources[0].devices.remove(0);
    replica.links.clear();
    let named = |n: usize| topology::node_file::NodeDevice {
        id: format!("{n:0bytes$}"),
        ..replica.clone()
    };
    file.resources[0].devices = (0..count).map(named).collect();
    file
}

/// Bytes of the list at its longest, when every device is Unhealthy.
fn longest(file: &topology::node_file::NodeFile) -> usize {
    let devices = file.resources[0].devices.iter();
    let devices = devices.map(|device| device_plugin::resource::entry(device, false));
    let devices = devices.collect();
    device_plugin::proto::ListAndWatchResponse { devices }.encoded_len()
}

/// The kubelet of these tests takes 4 MiB, as a real one does.
#[tokio::test]
async fn kubelet_13_sends_the_longest_list_that_a_kubelet_takes() {
    let file = replicas(1018, 4096);
    assert!((4_190_208..=4_194_304).contains(&longest(&file)));
    let (node, kubelet, plugin) = running(&file).await;
    std::fs::remove_file(node.node_file()).unwrap();
    until_health(&kubelet, &[UNHEALTHY; 1018]).await;
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_13_does_not_take_a_file_whose_list_a_kubelet_would_refuse() {
    let (node, kubelet, plugin) = running(&sample::node_file(2)).await;
    let file = replicas(1019, 4096);
    assert!(longest(&file) > 4_194_304);
    node.write(&file);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kubelet.health(RESOURCE).unwrap(), [HEALTHY; 2]);
    node.write(&sample::node_file(3));
    kubelet.until_devices(RESOURCE, 3).await;
    let sent: Vec<usize> = kubelet.log().lists.iter().map(|(_, l)| l.len()).collect();
    assert_eq!(sent, [2, 3]);
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_14_gives_only_known_numa_nodes() {
    let mut file = sample::node_file(3);
    file.resources[0].devices[0].numa_nodes = vec![0, 1];
    file.resources[0].devices[1].numa_nodes.clear();
    let (_node, kubelet, plugin) = running(&file).await;
    let devices = kubelet.devices(RESOURCE).unwrap();
    let nodes = |n: usize| {
        devices[n]
            .topology
            .clone()
            .map(|t| t.nodes.iter().map(|node| node.id).collect::<Vec<_>>())
    };
    assert_eq!(
        (nodes(0), nodes(1), nodes(2)),
        (Some(vec![0, 1]), None, Some(vec![1]))
    );
    plugin.stop().await;
}

#[tokio::test]
async fn kubelet_15_lists_in_the_order_of_the_ids() {
    let (_node, kubelet, plugin) = running(&sample::node_file(12)).await;
    let ids: Vec<String> = kubelet
        .devices(RESOURCE)
        .unwrap()
        .into_iter()
        .map(|device| device.id)
        .collect();
    assert_eq!(ids, (0..12).map(sample::id).collect::<Vec<_>>());
    plugin.stop().await;
}
