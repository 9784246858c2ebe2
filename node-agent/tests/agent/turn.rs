//! Whole turns over simulated nodes: what is written, what is not, and what keeps or loses its admission.

use std::collections::BTreeSet;

use crds::cluster::{Driver, Mode};
use crds::fabric::{NicMatch, NicRole, NicRule};
use crds::node::{NodeConfig, Phase};
use host::fixture::FixtureOptions;
use k8s_openapi::jiff::Timestamp;
use node_agent::cycle::cycle;
use node_agent::desired::Desired;
use node_agent::session::Session;

use crate::ask::{
    MACHINE, admitted, advertises, devices, enforce, finding_ids, holds, in_mode, nothing_asked,
    reason, turn,
};
use crate::common::{Answers, Node};

#[tokio::test]
async fn observe_and_plan_write_nothing() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let before = node.tree();
    let observed = turn(&node, &in_mode(Mode::Observe)).await;
    assert_eq!(observed.status.phase, Phase::Observed);
    assert_eq!(observed.status.pairs.len(), 8);
    assert_eq!(observed.status.plan, None);
    let asks = NodeConfig {
        driver: Driver {
            modules: vec!["ib_umad".to_owned()],
            ..Driver::default()
        },
        ..NodeConfig::default()
    };
    let planned = turn(
        &node,
        &Desired {
            mode: Mode::Plan,
            ..enforce(asks)
        },
    )
    .await;
    assert_eq!(planned.status.phase, Phase::Planned);
    assert_eq!(planned.status.plan.unwrap().actions[0].target, "ib_umad");
    assert_eq!(node.tree(), before);
}

/// Ids are UUIDs, in whose order the node file has its devices; people count GPUs.
#[tokio::test]
async fn pairs_are_shown_in_the_order_in_which_gpus_are_counted() {
    let mut node = Node::new("nvidia-dgx2-v100");
    node.start_kubelet(Answers::default());
    let status = turn(&node, &nothing_asked()).await.status;
    let shown: Vec<&str> = status.pairs.iter().map(|pair| pair.gpu.as_str()).collect();
    let counted: Vec<String> = (0..16).map(|index| format!("GPU{index}")).collect();
    assert_eq!(shown, counted);
    let by_id = devices(&node).into_iter().filter_map(|device| device.gpu);
    let by_id: Vec<String> = by_id.map(|gpu| gpu.name).collect();
    assert_ne!(by_id, counted, "the order of the ids is another");
}

#[tokio::test]
async fn enforce_with_nothing_asked_writes_three_places_only() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let before = node.tree();
    let first = turn(&node, &nothing_asked()).await;
    let after = node.tree();
    assert_eq!(first.status.plan, None);
    let ours = |path: &String| {
        path.starts_with("/run/gpurdma")
            || path.starts_with("/var/lib/gpurdma")
            || path.starts_with("/var/run/cdi")
            || ["/run", "/var/run"].contains(&path.as_str())
    };
    let foreign: Vec<_> = after
        .iter()
        .filter(|(path, content)| before.get(*path) != Some(content) && !ours(path))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(foreign, Vec::<&String>::new());
    assert!(before.keys().all(|path| after.contains_key(path)));
    // The same again changes nothing at all.
    assert_eq!(
        turn(&node, &nothing_asked()).await.applied.written,
        Vec::<String>::new()
    );
    assert_eq!(node.tree(), after);
}

#[tokio::test]
async fn pairs_are_admitted_and_named_for_the_runtime() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let first = turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 8);
    assert_eq!(
        reason(&first.status, "Ready"),
        ("False", "PluginNotRegistered")
    );
    assert_eq!(first.status.phase, Phase::Waiting);
    let ids: BTreeSet<String> = devices(&node).into_iter().map(|device| device.id).collect();
    assert_eq!(ids, node.uuids().into_iter().collect());
    let path = node.settings.root.join(&node.settings.cdi_file());
    let spec = container_device_interface::spec::read_spec(&path, 0).unwrap();
    for device in devices(&node) {
        let names = [format!("gpurdma.dev/pair={}", device.id)];
        assert_eq!(device.cdi_devices, names);
        assert!(spec.get_device(&device.id).is_some());
        let description = node.read(&format!("/run/gpurdma/pairs/{}.json", device.id));
        assert!(description.contains(&device.nics[0].rdma));
    }
    assert!(finding_ids(&first.status).contains("GPU_CDI_SPEC_ABSENT"));
    // The plugin registers: the node is ready.
    node.start_kubelet(advertises("rdma/gpudirect", &node.uuids()));
    let second = turn(&node, &nothing_asked()).await;
    assert_eq!(reason(&second.status, "Ready"), ("True", "AsSpecified"));
    assert_eq!(second.status.phase, Phase::Ready);
}

#[tokio::test]
async fn the_toolkits_specification_is_named_where_there_is_one() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let names: Vec<String> = node
        .uuids()
        .iter()
        .map(|uuid| format!("- name: {uuid}\n  containerEdits: {{}}"))
        .collect();
    let text = format!(
        "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n{}\n",
        names.join("\n")
    );
    node.put("/etc/cdi/nvidia.yaml", &text);
    let turn = turn(&node, &nothing_asked()).await;
    assert!(!finding_ids(&turn.status).contains("GPU_CDI_SPEC_ABSENT"));
    let device = &devices(&node)[0];
    assert_eq!(
        device.cdi_devices[1],
        format!("nvidia.com/gpu={}", device.id)
    );
    assert!(!node.read(&node.settings.cdi_file()).contains("/dev/nvidia"));
}

#[tokio::test]
async fn a_gpu_that_cannot_be_injected_is_not_handed_out() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    node.remove("/dev/nvidia0");
    let turn = turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 7);
    assert!(finding_ids(&turn.status).contains("GPU_INJECTION_UNAVAILABLE"));
    assert_eq!(reason(&turn.status, "Ready"), ("False", "PairsRefused"));
    assert_eq!(turn.status.phase, Phase::Degraded);
}

#[tokio::test]
async fn another_advertiser_keeps_its_gpus() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(advertises("nvidia.com/gpu", &node.uuids()));
    let taken = turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 0);
    assert!(finding_ids(&taken.status).contains("FOREIGN_GPU_ADVERTISER"));
    assert_eq!(
        reason(&taken.status, "Ready"),
        ("False", "ForeignGpuAdvertiser")
    );
    let pair = &taken.status.pairs[0];
    assert!(
        !pair.admitted && pair.reason.contains("nvidia.com/gpu"),
        "{}",
        pair.reason
    );
    // One GPU is still held after the plugin went: that one waits.
    let held = vec![node.uuids()[3].clone()];
    node.start_kubelet(Answers {
        held: vec![("nvidia.com/gpu".to_owned(), held)],
        ..Answers::default()
    });
    turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 0, "one answer without it is not enough");
    node.pass(360);
    turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 7);
    node.start_kubelet(Answers::default());
    for admits in [7, 8] {
        turn(&node, &nothing_asked()).await;
        assert_eq!(admitted(&node), admits);
        node.pass(360);
    }
}

#[tokio::test]
async fn an_advertiser_that_a_young_kubelet_does_not_show_yet_is_remembered() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(advertises("nvidia.com/gpu", &node.uuids()));
    turn(&node, &nothing_asked()).await;
    node.stop_time();
    node.start_kubelet(Answers::default());
    node.restart_agent();
    let status = turn(&node, &nothing_asked()).await.status;
    assert_eq!(admitted(&node), 0);
    assert!(finding_ids(&status).contains("FOREIGN_GPU_ADVERTISER"));
}

#[tokio::test]
async fn a_new_node_admits_at_once_however_young_its_kubelet_is() {
    let mut node = Node::new(MACHINE);
    node.stop_time();
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 8);
}

#[tokio::test]
async fn a_silent_kubelet_takes_nothing_back_and_gives_nothing_new() {
    let mut node = Node::new(MACHINE);
    let waiting = turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 0);
    assert!(finding_ids(&waiting.status).contains("KUBELET_UNREACHABLE"));
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 8);
    node.stop_kubelet();
    turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 8);
    // Evidence still counts.
    node.remove("/dev/infiniband/uverbs0");
    turn(&node, &nothing_asked()).await;
    assert!(admitted(&node) < 8);
}

#[tokio::test]
async fn a_file_of_another_boot_says_nothing() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    node.stop_kubelet();
    node.put(
        "/proc/sys/kernel/random/boot_id",
        "0ea6d8c4-0000-4000-8000-000000000002\n",
    );
    turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 0);
}

#[tokio::test]
async fn without_a_boot_id_nothing_is_decided() {
    let node = Node::new(MACHINE);
    node.remove("/proc/sys/kernel/random/boot_id");
    let before = node.tree();
    let error = cycle(
        &node.settings,
        &mut Session::default(),
        &nothing_asked(),
        None,
        Timestamp::now(),
    )
    .await
    .unwrap_err();
    assert!(error.to_string().contains("boot id"), "{error}");
    assert_eq!(node.tree(), before);
}

#[tokio::test]
async fn a_held_pair_keeps_its_nic_and_its_cdi_device() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    let before = devices(&node);
    let held = &before[0];
    node.start_kubelet(holds("rdma/gpudirect", std::slice::from_ref(&held.id)));
    // The NIC of the held pair gets another role: the pair would lose it.
    let rule = NicRule {
        matches: NicMatch {
            rdma: Some(held.nics[0].rdma.clone()),
            ..NicMatch::default()
        },
        role: NicRole::Storage,
    };
    let asks = enforce(NodeConfig {
        nics: vec![rule],
        ..NodeConfig::default()
    });
    let waiting = turn(&node, &asks).await;
    let now = devices(&node)
        .into_iter()
        .find(|device| device.id == held.id)
        .unwrap();
    assert_eq!(now.nics, held.nics);
    assert!(now.admitted);
    assert!(finding_ids(&waiting.status).contains("DEVICE_DEFERRED"));
    assert!(node.read(&node.settings.cdi_file()).contains(&held.id));
    // A kubelet that has just started does not show it: that proves nothing.
    let hour = node.ahead();
    node.stop_time();
    node.start_kubelet(advertises("rdma/gpudirect", &[]));
    turn(&node, &asks).await;
    let young = devices(&node)
        .into_iter()
        .find(|device| device.id == held.id)
        .unwrap();
    assert_eq!((young.nics, young.admitted), (held.nics.clone(), true));
    // Free again, it changes.
    node.pass(hour);
    turn(&node, &asks).await;
    let changing = devices(&node)
        .into_iter()
        .find(|device| device.id == held.id)
        .unwrap();
    assert_eq!(
        (changing.nics, changing.admitted),
        (held.nics.clone(), false)
    );
    assert!(changing.reason.contains("changes hands"));
    turn(&node, &asks).await;
    let free = devices(&node)
        .into_iter()
        .find(|device| device.id == held.id);
    assert_ne!(free.map(|device| device.nics), Some(held.nics.clone()));
}

#[tokio::test]
async fn without_a_gpu_driver_nothing_is_handed_out() {
    let options = FixtureOptions {
        gpu_driver: None,
        ..FixtureOptions::default()
    };
    let mut node = Node::with(MACHINE, &options);
    node.start_kubelet(Answers::default());
    let turn = turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 0);
    assert!(finding_ids(&turn.status).contains("NO_GPU_DRIVER"));
    assert!(devices(&node).iter().all(|device| device.id.contains(':')));
}
