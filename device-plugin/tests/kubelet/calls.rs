//! Points 20 to 28: what the kubelet asks for pods.

use std::collections::BTreeSet;

use device_plugin::proto::{
    AllocateRequest, AllocateResponse, ContainerAllocateRequest, PreStartContainerRequest,
};
use tonic::{Code, Status};

use crate::fake::{Api, Kubelet};
use crate::node::{Node, Plugin};
use crate::prefer::prefer;
use crate::sample::{self, RESOURCE};

/// A node whose pairs are listed.
pub struct Bench {
    pub node: Node,
    pub api: Api,
    pub plugin: Plugin,
    _kubelet: Kubelet,
}

async fn bench(change: impl FnOnce(&mut topology::node_file::NodeFile)) -> Bench {
    bench_of(4, change).await
}

/// One with this many pairs.
pub async fn bench_of(
    count: usize,
    change: impl FnOnce(&mut topology::node_file::NodeFile),
) -> Bench {
    let mut file = sample::node_file(count);
    change(&mut file);
    let node = Node::with(&file);
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, count).await;
    Bench {
        node,
        api: kubelet.api(RESOURCE),
        plugin,
        _kubelet: kubelet,
    }
}

pub async fn allocate(api: &Api, containers: &[Vec<String>]) -> Result<AllocateResponse, Status> {
    let container = |ids: &Vec<String>| ContainerAllocateRequest {
        device_ids: ids.clone(),
    };
    let request = AllocateRequest {
        container_requests: containers.iter().map(container).collect(),
    };
    api.clone()
        .allocate(request)
        .await
        .map(tonic::Response::into_inner)
}

#[tokio::test]
async fn kubelet_20_answers_every_container_in_order() {
    let bench = bench(|_| {}).await;
    let containers = [sample::ids(&[3]), sample::ids(&[1, 0])];
    let answer = allocate(&bench.api, &containers).await.unwrap();
    let pairs: Vec<bool> = answer
        .container_responses
        .iter()
        .zip(&containers)
        .map(|(got, asked)| {
            asked
                .iter()
                .all(|id| got.envs["GPURDMA_PAIRS"].contains(id.as_str()))
        })
        .collect();
    assert_eq!(pairs, [true, true]);
    bench.plugin.stop().await;
}

#[tokio::test]
async fn kubelet_21_gives_the_same_answer_again_and_writes_nothing() {
    let bench = bench(|_| {}).await;
    let before = bench.node.tree();
    let first = allocate(&bench.api, &[sample::ids(&[0, 1])]).await.unwrap();
    let again = allocate(&bench.api, &[sample::ids(&[1, 0])]).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(bench.node.tree(), before);
    bench.plugin.stop().await;
}

/// An init container got pair 1; the container after it wants two, and keeps what the pod has already.
#[tokio::test]
async fn kubelet_25_gives_the_devices_of_an_init_container_to_the_one_after_it() {
    let bench = bench(|_| {}).await;
    let init = allocate(&bench.api, &[sample::ids(&[1])]).await.unwrap();
    let preferred = prefer(&bench.api, &[1, 2, 3], &[1], 2).await;
    assert!(preferred.contains(&sample::id(1)), "{preferred:?}");
    let main = allocate(&bench.api, &[preferred]).await.unwrap();
    let names = |answer: &AllocateResponse| -> BTreeSet<String> {
        let cdi = answer.container_responses[0].cdi_devices.iter();
        cdi.map(|cdi| cdi.name.clone()).collect()
    };
    assert!(names(&main).is_superset(&names(&init)));
    assert_eq!(names(&main).len(), 4);
    bench.plugin.stop().await;
}

#[tokio::test]
async fn kubelet_22_refuses_by_name_and_reason() {
    let bench = bench(|file| {
        file.resources[0].devices[3].admitted = false;
        file.resources[0].devices[3].reason = "held by nvidia.com/gpu".to_owned();
    })
    .await;
    let cases = [
        (
            vec!["GPU-7".to_owned()],
            "unknown device id `GPU-7`".to_owned(),
        ),
        (
            sample::ids(&[0, 0]),
            format!("`{}` was asked for twice", sample::id(0)),
        ),
        (
            sample::ids(&[0, 3]),
            format!(
                "`{}` is unhealthy: not admitted: held by nvidia.com/gpu",
                sample::id(3)
            ),
        ),
        (Vec::new(), "no device id was asked for".to_owned()),
    ];
    for (ids, text) in cases {
        let status = allocate(&bench.api, &[ids]).await.unwrap_err();
        assert!(
            status.code() == Code::InvalidArgument && status.message().contains(&text),
            "{status:?}"
        );
    }
    bench.plugin.stop().await;
}

/// The numbers move and a pod is admitted in the same moment: either way the pod gets no other NIC's device node.
#[tokio::test]
async fn kubelet_22_refuses_a_device_node_that_became_another_nics() {
    let bench = bench(|_| {}).await;
    bench.node.verbs(1, "mlx5_3");
    let status = allocate(&bench.api, &[sample::ids(&[0, 1])])
        .await
        .unwrap_err();
    let text = "uverbs1 belongs to mlx5_3 now, and to mlx5_1 (0000:41:00.0) in the node file";
    assert!(status.message().contains(text), "{status:?}");
    assert!(allocate(&bench.api, &[sample::ids(&[0])]).await.is_ok());
    bench.plugin.stop().await;
}

#[tokio::test]
async fn kubelet_23_gives_shared_nodes_once_and_optional_ones_only_if_present() {
    let bench = bench(|file| {
        for name in ["umad0", "umad1"] {
            file.resources[0].devices[0]
                .device_nodes
                .push(sample::node(&format!("/dev/infiniband/{name}")));
        }
    })
    .await;
    std::fs::write(bench.node.dev("infiniband/umad1"), "").unwrap();
    let answer = allocate(&bench.api, &[sample::ids(&[0, 1])]).await.unwrap();
    let paths: Vec<&str> = answer.container_responses[0]
        .devices
        .iter()
        .map(|d| d.host_path.as_str())
        .collect();
    let expected =
        ["rdma_cm", "umad1", "uverbs0", "uverbs1"].map(|name| format!("/dev/infiniband/{name}"));
    assert_eq!(paths, expected);
    bench.plugin.stop().await;
}

#[tokio::test]
async fn kubelet_24_names_cdi_devices_and_sends_no_annotation_for_them() {
    let bench = bench(|_| {}).await;
    let answer = allocate(&bench.api, &[sample::ids(&[2])])
        .await
        .unwrap()
        .container_responses
        .remove(0);
    let names: Vec<String> = answer.cdi_devices.into_iter().map(|cdi| cdi.name).collect();
    assert_eq!(
        names,
        [
            "gpurdma.dev/pair=2".to_owned(),
            format!("nvidia.com/gpu={}", sample::id(2))
        ]
    );
    assert!(answer.annotations.is_empty());
    bench.plugin.stop().await;
}

#[tokio::test]
async fn kubelet_26_answers_a_start_check_that_it_did_not_ask_for() {
    let bench = bench(|_| {}).await;
    let request = PreStartContainerRequest {
        device_ids: sample::ids(&[0]),
    };
    bench
        .api
        .clone()
        .pre_start_container(request)
        .await
        .unwrap();
    bench.plugin.stop().await;
}

#[tokio::test]
async fn kubelet_28_answers_many_pods_at_once_while_the_node_file_changes() {
    let bench = bench(|_| {}).await;
    let calls = (0..200).map(|n| {
        let api = bench.api.clone();
        async move { allocate(&api, &[sample::ids(&[n % 4])]).await }
    });
    let answers = futures::future::join_all(calls);
    let rewrite = async {
        for generation in 2..20 {
            let mut file = sample::node_file(4);
            file.generation = generation;
            bench.node.write(&file);
            tokio::task::yield_now().await;
        }
    };
    let (answers, ()) = tokio::join!(answers, rewrite);
    assert!(answers.iter().all(Result::is_ok));
    bench.plugin.stop().await;
}
