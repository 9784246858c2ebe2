//! Hardware that goes away and comes back, and what is kept meanwhile.

use crds::cluster::{DevicePlugin, Resource, ResourceKind};
use crds::fabric::{NicMatch, NicRole, NicRule};
use crds::node::NodeConfig;
use node_agent::desired::Desired;
use node_agent::settings::PARTITION_FILE;
use topology::node_file::NodeDevice;

use crate::ask::{MACHINE, admitted, devices, enforce, finding_ids, holds, nothing_asked, turn};
use crate::common::{Answers, Node};

fn cdi_entry(node: &Node, id: &str) -> serde_json::Value {
    let spec: serde_json::Value =
        serde_json::from_str(&node.read(&node.settings.cdi_file())).unwrap();
    let mut entries = spec["devices"].as_array().unwrap().iter();
    entries.find(|entry| entry["name"] == id).unwrap().clone()
}

fn device(node: &Node, id: &str) -> NodeDevice {
    let mut all = devices(node).into_iter();
    all.find(|device| device.id == id).unwrap()
}

fn remove_gpu(node: &Node, at: usize) {
    let pci = node.machine.gpus[at].pci.unwrap().to_string();
    node.remove(&format!("/sys/bus/pci/devices/{pci}"));
    node.remove_dir(&format!("/proc/driver/nvidia/gpus/{pci}"));
}

#[tokio::test]
async fn a_gpu_that_is_gone_is_not_mistaken_for_the_one_that_has_its_number_now() {
    let mut node = Node::new(MACHINE);
    let (gone, next) = (node.uuids()[0].clone(), node.uuids()[1].clone());
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    node.start_kubelet(holds("rdma/gpudirect", std::slice::from_ref(&gone)));
    let before = [&gone, &next].map(|id| cdi_entry(&node, id));
    let description = node.read(&format!("/run/gpurdma/pairs/{gone}.json"));
    remove_gpu(&node, 0);
    turn(&node, &nothing_asked()).await;
    assert_eq!([&gone, &next].map(|id| cdi_entry(&node, id)), before);
    assert_eq!(
        node.read(&format!("/run/gpurdma/pairs/{gone}.json")),
        description
    );
    let lost = device(&node, &gone);
    assert!(
        !lost.admitted && lost.reason.contains("GPU0 is not there"),
        "{}",
        lost.reason
    );
    assert_eq!(admitted(&node), 7);
}

#[tokio::test]
async fn a_reload_of_the_gpu_driver_changes_no_id() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    let before = devices(&node);
    let driver = |name: &str| node.settings.root.join(&format!("/proc/driver/{name}"));
    std::fs::rename(driver("nvidia"), driver("unloaded")).unwrap();
    let unloaded = turn(&node, &nothing_asked()).await.status;
    assert!(finding_ids(&unloaded).contains("NO_GPU_DRIVER"));
    let ids = |devices: &[NodeDevice]| devices.iter().map(|d| d.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&devices(&node)), ids(&before));
    assert_eq!(admitted(&node), 0);
    std::fs::rename(driver("unloaded"), driver("nvidia")).unwrap();
    turn(&node, &nothing_asked()).await;
    assert_eq!(devices(&node), before);
}

#[tokio::test]
async fn a_uuid_that_cannot_be_read_is_not_called_a_missing_driver() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let pci = node.machine.gpus[0].pci.unwrap();
    node.put(
        &format!("/proc/driver/nvidia/gpus/{pci}/information"),
        "GPU UUID: \t GPU-????????-????-????-????-????????????\n",
    );
    let status = turn(&node, &nothing_asked()).await.status;
    let found = finding_ids(&status);
    assert!(found.contains("GPU_UUID_UNREADABLE") && !found.contains("NO_GPU_DRIVER"));
    assert_eq!(admitted(&node), 7);
}

#[tokio::test]
async fn a_pair_without_its_nic_keeps_its_entry_and_is_refused() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    let pair = devices(&node).remove(0);
    let before = cdi_entry(&node, &pair.id);
    node.remove(&format!("/sys/class/infiniband/{}", pair.nics[0].rdma));
    turn(&node, &nothing_asked()).await;
    assert!(!device(&node, &pair.id).admitted);
    assert_eq!(cdi_entry(&node, &pair.id), before);
}

/// Nothing is worked out anew from resources that make no partition, so nothing marks the NIC as missing either.
#[tokio::test]
async fn a_nic_that_is_not_found_is_never_dropped_in_silence() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    let pair = devices(&node).remove(0);
    let before = cdi_entry(&node, &pair.id);
    node.remove(&format!("/sys/class/infiniband/{}", pair.nics[0].rdma));
    let resource = |name: &str| Resource {
        name: name.to_owned(),
        kind: ResourceKind::Pair,
        ..Resource::default()
    };
    let resources = vec![resource("rdma/gpudirect"), resource("rdma/other")];
    let twice = enforce(NodeConfig {
        device_plugin: DevicePlugin {
            resources,
            ..DevicePlugin::default()
        },
        ..NodeConfig::default()
    });
    turn(&node, &twice).await;
    let lost = device(&node, &pair.id);
    assert!(
        !lost.admitted && lost.reason.contains(&pair.nics[0].rdma),
        "{}",
        lost.reason
    );
    assert_eq!(cdi_entry(&node, &pair.id), before);
}

#[tokio::test]
async fn pairs_are_listed_as_a_person_counts() {
    let node = Node::new("nvidia-dgx2-v100");
    let listed = turn(&node, &nothing_asked()).await.status.pairs;
    let names: Vec<String> = listed.into_iter().map(|pair| pair.gpu).collect();
    let counted: Vec<String> = (0..16).map(|n| format!("GPU{n}")).collect();
    assert_eq!(names, counted);
}

/// A directory where the temporary file would be: the partition can be read and not be replaced.
fn block_partition(node: &Node) -> std::path::PathBuf {
    let name = format!(
        "/var/lib/gpurdma/.partition.json.tmp-{}",
        std::process::id()
    );
    let path = node.settings.root.join(&name);
    std::fs::create_dir(&path).unwrap();
    path
}

#[tokio::test]
async fn a_disk_that_cannot_be_written_stops_no_withdrawal() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    node.remove("/dev/nvidia0");
    turn(&node, &nothing_asked()).await;
    let waiting = node.uuids()[0].clone();
    let broken = devices(&node).into_iter().find(|d| d.admitted).unwrap();
    let blocked = block_partition(&node);
    let partition = node.read(PARTITION_FILE);
    node.put("/dev/nvidia0", "");
    node.remove(&format!("/sys/class/infiniband/{}", broken.nics[0].rdma));
    let status = turn(&node, &nothing_asked()).await.status;
    assert!(!device(&node, &broken.id).admitted);
    assert!(!device(&node, &waiting).admitted);
    assert_eq!(admitted(&node), 6);
    assert_eq!(node.read(PARTITION_FILE), partition);
    assert_eq!(status.pairs.iter().filter(|pair| pair.admitted).count(), 6);
    let told = |finding: &crds::node::Finding| finding.message.contains("partition.json");
    assert!(status.findings.iter().any(told), "{:?}", status.findings);
    std::fs::remove_dir(blocked).unwrap();
    turn(&node, &nothing_asked()).await;
    assert!(device(&node, &waiting).admitted);
    assert_eq!(admitted(&node), 7);
}

fn only_fast_nics() -> Desired {
    let rule = |min_rate: Option<u32>, role: NicRole| NicRule {
        matches: NicMatch {
            min_rate,
            ..NicMatch::default()
        },
        role,
    };
    let nics = vec![
        rule(Some(200), NicRole::Compute),
        rule(None, NicRole::Ignore),
    ];
    enforce(NodeConfig {
        nics,
        ..NodeConfig::default()
    })
}

fn pull_cable(node: &Node, rdma: &str) {
    let port = format!("/sys/class/infiniband/{rdma}/ports/1");
    node.put(&format!("{port}/state"), "1: DOWN\n");
    node.put(&format!("{port}/rate"), "10 Gb/sec (4X SDR)\n");
}

#[tokio::test]
async fn a_cable_that_is_pulled_moves_nothing() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &only_fast_nics()).await;
    let before = devices(&node);
    assert_eq!(admitted(&node), 8);
    pull_cable(&node, &before[0].nics[0].rdma);
    turn(&node, &only_fast_nics()).await;
    assert_eq!(devices(&node), before);
    // A file of an older release remembers no rates: the NIC was never seen at work.
    let mut file: serde_json::Value = serde_json::from_str(&node.read(PARTITION_FILE)).unwrap();
    assert!(file.as_object_mut().unwrap().remove("rates").is_some());
    node.put(PARTITION_FILE, &file.to_string());
    node.restart_agent();
    for _ in 0..2 {
        turn(&node, &only_fast_nics()).await;
        assert_eq!(devices(&node), before);
    }
}
