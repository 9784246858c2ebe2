//! GPUs that change hands between another device plugin and ours, and what pods are told of their devices.

use std::os::unix::net::UnixListener;

use crds::cluster::{DevicePlugin, Inject, Resource};
use crds::node::{GpuPlugin, NodeConfig, OtherAdvertiser};
use node_agent::desired::Desired;
use topology::node_file::NicListForm;

use crate::ask::{MACHINE, admitted, advertises, enforce, finding_ids, holds, node_file, turn};
use crate::common::{Answers, Node};

const NVIDIA: &str = "nvidia.com/gpu";

/// Pairs under a name, on a node where the operator has done this.
fn pairs(name: &str, gpu_plugin: GpuPlugin) -> Desired {
    let resource = Resource {
        name: name.to_owned(),
        ..Resource::default()
    };
    let device_plugin = DevicePlugin {
        resources: vec![resource],
        ..DevicePlugin::default()
    };
    Desired {
        gpu_plugin,
        ..enforce(NodeConfig {
            device_plugin,
            ..NodeConfig::default()
        })
    }
}

/// NVIDIA's plugin listens until this is dropped; its socket's file stays, as after SIGKILL.
fn nvidia_listens(node: &Node) -> UnixListener {
    let path = node
        .settings
        .root
        .join("/var/lib/kubelet/device-plugins/nvidia-gpu.sock");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(&path);
    UnixListener::bind(path).unwrap()
}

fn resources(node: &Node) -> Vec<String> {
    let file = node_file(node);
    file.resources
        .into_iter()
        .map(|resource| resource.name)
        .collect()
}

#[tokio::test]
async fn a_name_that_another_plugin_has_is_left_to_it_and_its_pods_are_ours_afterwards() {
    let mut node = Node::new(MACHINE);
    let listener = nvidia_listens(&node);
    node.start_kubelet(holds(NVIDIA, &node.uuids()));
    // What its pods hold is none of the devices that we had: the first turn cannot know that.
    turn(&node, &pairs(NVIDIA, GpuPlugin::AsFound)).await;
    let status = turn(&node, &pairs(NVIDIA, GpuPlugin::AsFound)).await.status;
    assert_eq!(
        resources(&node),
        Vec::<String>::new(),
        "our plugin must not register it"
    );
    assert_eq!(status.pairs.len(), 8, "{status:?}");
    assert!(
        status.pairs.iter().all(|pair| !pair.admitted),
        "{:?}",
        status.pairs
    );
    assert!(finding_ids(&status).contains("FOREIGN_GPU_ADVERTISER"));
    let other = OtherAdvertiser {
        resource: NVIDIA.to_owned(),
        gpus: 8,
        partitioned: false,
    };
    assert_eq!(status.other_advertisers, [other]);
    // Switched off: what still listens, or is still offered, is not gone.
    let taken = pairs(NVIDIA, GpuPlugin::SwitchedOff);
    turn(&node, &taken).await;
    assert_eq!(resources(&node), Vec::<String>::new());
    let held = vec![(NVIDIA.to_owned(), node.uuids())];
    node.start_kubelet(Answers {
        held,
        ..Answers::default()
    });
    turn(&node, &taken).await;
    assert_eq!(resources(&node), Vec::<String>::new());
    drop(listener);
    let status = turn(&node, &taken).await.status;
    assert_eq!(admitted(&node), 8);
    assert_eq!(status.other_advertisers, []);
}

/// What the other plugin's pods hold is none of our devices: it keeps no pair from changing its resource.
#[tokio::test]
async fn pairs_change_their_name_while_the_other_plugins_pods_hold_their_gpus() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &pairs("rdma/gpudirect", GpuPlugin::AsFound)).await;
    let held = vec![(NVIDIA.to_owned(), node.uuids())];
    node.start_kubelet(Answers {
        held,
        ..Answers::default()
    });
    for _ in 0..3 {
        turn(&node, &pairs(NVIDIA, GpuPlugin::SwitchedOff)).await;
        node.pass(60);
    }
    assert_eq!(
        (resources(&node), admitted(&node)),
        (vec![NVIDIA.to_owned()], 8)
    );
}

#[tokio::test]
async fn what_our_own_plugin_offers_is_nobody_elses() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let desired = pairs(NVIDIA, GpuPlugin::AsFound);
    turn(&node, &desired).await;
    node.start_kubelet(advertises(NVIDIA, &node.uuids()));
    turn(&node, &desired).await;
    assert_eq!(admitted(&node), 8);
}

/// Two that register one name: the kubelet asks the one that came last.
#[tokio::test]
async fn a_plugin_that_comes_back_under_our_name_takes_it_off_the_list() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let desired = pairs(NVIDIA, GpuPlugin::SwitchedOff);
    turn(&node, &desired).await;
    assert_eq!(admitted(&node), 8);
    node.start_kubelet(advertises(NVIDIA, &node.uuids()));
    let listener = nvidia_listens(&node);
    let status = turn(&node, &desired).await.status;
    assert_eq!(resources(&node), Vec::<String>::new());
    assert!(finding_ids(&status).contains("FOREIGN_GPU_ADVERTISER"));
    drop(listener);
    node.start_kubelet(Answers::default());
    turn(&node, &desired).await;
    assert_eq!(admitted(&node), 8);
}

#[tokio::test]
async fn another_plugin_of_our_own_resource_is_seen_by_devices_that_we_do_not_offer() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(advertises("rdma/gpudirect", &node.uuids()));
    let status = turn(&node, &pairs("rdma/gpudirect", GpuPlugin::AsFound))
        .await
        .status;
    assert_eq!(resources(&node), Vec::<String>::new());
    assert_eq!(status.other_advertisers[0].resource, "rdma/gpudirect");
}

#[tokio::test]
async fn once_switched_off_another_name_is_free_without_the_six_minutes() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(advertises(NVIDIA, &node.uuids()));
    turn(&node, &pairs("rdma/gpudirect", GpuPlugin::AsFound)).await;
    assert_eq!(admitted(&node), 0);
    node.start_kubelet(Answers::default());
    turn(&node, &pairs("rdma/gpudirect", GpuPlugin::AsFound)).await;
    assert_eq!(admitted(&node), 0, "it may only have no healthy device");
    turn(&node, &pairs("rdma/gpudirect", GpuPlugin::SwitchedOff)).await;
    assert_eq!(admitted(&node), 8);
}

#[tokio::test]
async fn before_the_other_plugin_comes_back_nothing_is_offered_and_for_a_while_after() {
    for name in [NVIDIA, "rdma/gpudirect"] {
        let mut node = Node::new(MACHINE);
        node.start_kubelet(Answers::default());
        turn(&node, &pairs(name, GpuPlugin::SwitchedOff)).await;
        assert_eq!(admitted(&node), 8);
        for gpu_plugin in [GpuPlugin::ComesBack, GpuPlugin::AsFound] {
            turn(&node, &pairs(name, gpu_plugin)).await;
            let file = node_file(&node);
            let mut devices = file.resources.iter().flat_map(|resource| &resource.devices);
            assert!(
                devices.all(|device| !device.admitted),
                "{name} {gpu_plugin:?}"
            );
            assert_eq!(resources(&node).is_empty(), name == NVIDIA);
        }
    }
}

#[tokio::test]
async fn parts_of_gpus_are_told() {
    for id in ["MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f", "GPU-a::1"] {
        let mut node = Node::new(MACHINE);
        node.start_kubelet(advertises(NVIDIA, &[id.to_owned()]));
        let status = turn(&node, &pairs("rdma/gpudirect", GpuPlugin::AsFound))
            .await
            .status;
        assert!(status.other_advertisers[0].partitioned, "{id}");
    }
}

#[tokio::test]
async fn a_gpu_that_cannot_be_put_into_containers_is_told_while_another_plugin_has_it() {
    let mut node = Node::new(MACHINE);
    node.remove("/dev/nvidia0");
    node.start_kubelet(advertises(NVIDIA, &node.uuids()));
    let status = turn(&node, &pairs(NVIDIA, GpuPlugin::AsFound)).await.status;
    assert!(finding_ids(&status).contains("GPU_INJECTION_UNAVAILABLE"));
}

#[tokio::test]
async fn variables_that_are_asked_for_come_with_the_file_that_they_name() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let mut desired = pairs("rdma/gpudirect", GpuPlugin::AsFound);
    turn(&node, &desired).await;
    let resource = &node_file(&node).resources[0];
    assert!(
        resource.envs.is_empty() && resource.nic_lists.is_empty(),
        "nobody asked"
    );
    desired.config.device_plugin.inject = Inject {
        nccl_topo_file: true,
        nccl_ib_hca: true,
        ucx_net_devices: true,
        nvshmem_hca_list: true,
    };
    turn(&node, &desired).await;
    let resource = &node_file(&node).resources[0];
    let lists = resource
        .nic_lists
        .iter()
        .map(|list| (list.name.as_str(), list.form));
    let expected = [
        ("NCCL_IB_HCA", NicListForm::Exact),
        ("NVSHMEM_HCA_LIST", NicListForm::Ports),
        ("UCX_NET_DEVICES", NicListForm::Ports),
    ];
    assert!(lists.eq(expected));
    assert_eq!(resource.envs[0].name, "NCCL_TOPO_FILE");
    let path = &resource.envs[0].value;
    let machine = topology::nccl_xml::read(&node.read(path), path, &node.machine).unwrap();
    assert_eq!(machine.cells.len(), 8);
    let mounted = format!("\"containerPath\": \"{path}\"");
    assert_eq!(
        node.read("/var/run/cdi/gpurdma.dev-pair.json")
            .matches(&mounted)
            .count(),
        8
    );
}
