//! What users of other device plugins met, and does not happen here; `docs/reports.md` says which report is which.

use device_plugin::proto::{Device, Empty, HEALTHY, UNHEALTHY};
use tonic::Streaming;

use crate::calls::{allocate, bench_of};
use crate::fake::{Api, Kubelet};
use crate::node::{Node, Plugin};
use crate::prefer::prefer;
use crate::sample::{self, RESOURCE};

type Lists = Streaming<device_plugin::proto::ListAndWatchResponse>;

async fn running(count: usize) -> (Node, Kubelet, Plugin) {
    let node = Node::with(&sample::node_file(count));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, count).await;
    (node, kubelet, plugin)
}

async fn open(mut api: Api) -> Lists {
    api.list_and_watch(Empty {}).await.unwrap().into_inner()
}

async fn next(stream: &mut Lists) -> Vec<Device> {
    stream.message().await.unwrap().unwrap().devices
}

/// A stream that is dead takes no news away from the one that lives.
#[tokio::test]
async fn a_change_after_a_lost_stream_reaches_the_next_one() {
    let (node, kubelet, plugin) = running(2).await;
    let mut first = open(kubelet.api(RESOURCE)).await;
    next(&mut first).await;
    drop(first);
    let mut second = open(kubelet.api(RESOURCE)).await;
    assert_eq!(next(&mut second).await.len(), 2);
    node.write(&sample::node_file(3));
    assert_eq!(next(&mut second).await.len(), 3);
    plugin.stop().await;
}

/// Ten times over: the list is no news that only the first who asks gets.
#[tokio::test]
async fn every_stream_begins_with_the_list_however_the_last_one_ended() {
    let (_node, kubelet, plugin) = running(2).await;
    for _ in 0..10 {
        let mut stream = open(kubelet.api(RESOURCE)).await;
        assert_eq!(next(&mut stream).await.len(), 2);
    }
    plugin.stop().await;
}

#[tokio::test]
async fn a_lost_stream_and_then_a_lost_socket_end_in_a_new_registration() {
    let (node, kubelet, plugin) = running(2).await;
    let socket = node.kubelet_dir().join(&node.sockets()[0]);
    kubelet.hang_up(RESOURCE);
    std::fs::remove_file(socket).unwrap();
    kubelet.until_registrations(2).await;
    kubelet.until_devices(RESOURCE, 2).await;
    plugin.stop().await;
}

#[tokio::test]
async fn a_device_that_comes_later_is_allocated_with_all_that_is_its_own() {
    let (node, kubelet, plugin) = running(0).await;
    node.write(&sample::node_file(2));
    kubelet.until_devices(RESOURCE, 2).await;
    let answer = allocate(&kubelet.api(RESOURCE), &[sample::ids(&[1])]).await;
    let answer = answer.unwrap().container_responses.remove(0);
    let names: Vec<String> = answer.cdi_devices.into_iter().map(|cdi| cdi.name).collect();
    let gpu = format!("nvidia.com/gpu={}", sample::id(1));
    assert_eq!(names, ["gpurdma.dev/pair=1".to_owned(), gpu]);
    assert!(answer.envs["GPURDMA_PAIRS"].contains("mlx5_1"));
    plugin.stop().await;
}

/// A network device in a pod's namespace takes the port's directory with it where namespaces are exclusive.
#[tokio::test]
async fn a_nic_that_moved_into_a_pod_is_no_fault() {
    let mut file = sample::node_file(2);
    file.resources[0].hold_down_seconds = 0;
    let node = Node::with(&file);
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    node.remove("root/sys/class/infiniband/mlx5_1");
    // The other port shows that the plugin has looked since.
    node.port(0, "1: DOWN");
    let down = |k: &Kubelet| k.health(RESOURCE).filter(|all| all[0] == UNHEALTHY);
    let health = kubelet.until("the port that is down", down).await;
    assert_eq!(health, [UNHEALTHY, HEALTHY]);
    plugin.stop().await;
}

/// A GPU that is gone is one that is not admitted; requests for the others are answered as before.
#[tokio::test]
async fn one_gpu_off_the_bus_rejects_no_pod_that_wants_others() {
    let bench = bench_of(4, |file| {
        let lost = &mut file.resources[0].devices[3];
        lost.admitted = false;
        lost.reason = "missing: GPU3".to_owned();
        lost.gpu = None;
        lost.numa_nodes.clear();
        lost.links.clear();
        for device in &mut file.resources[0].devices {
            device.links.retain(|link| link.to != sample::id(3));
        }
    })
    .await;
    let two = prefer(&bench.api, &[0, 1, 2], &[], 2).await;
    assert_eq!(two, sample::ids(&[0, 1]));
    assert!(allocate(&bench.api, &[two]).await.is_ok());
    let one = prefer(&bench.api, &[0, 1, 2], &[], 1).await;
    assert_eq!(one, sample::ids(&[2]));
    bench.plugin.stop().await;
}
