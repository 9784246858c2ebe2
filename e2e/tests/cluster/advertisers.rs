//! A second advertiser of the same GPUs: nothing is advertised beside it, and the status says why.

use e2e::cluster::Cluster;
use e2e::{product, scenario};
use serde_json::Value;

use super::support::{DGX_A100, cluster};

/// Stops the stand-in when the scenario ends, also when it fails, and forgets what it left in the kubelet's memory.
struct Foreign<'a>(&'a Cluster);

impl<'a> Foreign<'a> {
    /// Another device plugin on the node that offers the same GPUs, by their UUIDs, as `nvidia.com/gpu`.
    fn start(cluster: &'a Cluster) -> Self {
        let ids = uuids(cluster).join(" ");
        let program = product::own_binary().unwrap().display().to_string();
        let script = format!(
            "setsid {program} foreign-advertiser nvidia.com/gpu {ids} >/run/foreign.log 2>&1 </dev/null &"
        );
        cluster.on_node(DGX_A100.0, ["sh", "-c", &script]).unwrap();
        Self(cluster)
    }
}

impl Drop for Foreign<'_> {
    fn drop(&mut self) {
        let _ = self
            .0
            .on_node(DGX_A100.0, ["pkill", "-f", "foreign-advertiser"]);
    }
}

fn uuids(cluster: &Cluster) -> Vec<String> {
    let file = cluster.on_node(DGX_A100.0, ["cat", "/run/gpurdma/node.json"]);
    let file: Value = serde_json::from_str(&file.unwrap()).unwrap();
    let devices = file["resources"][0]["devices"].as_array().unwrap();
    let ids = devices.iter().map(|device| device["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[test]
fn gpus_that_another_plugin_offers_are_not_advertised_and_the_status_says_why() {
    let mut cluster = cluster();
    let foreign = Foreign::start(&cluster);
    scenario::wait_allocatable(&cluster, DGX_A100.0, "nvidia.com/gpu", 8).unwrap();
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, 0).unwrap();
    let path = "{.status.findings[?(@.id==\"FOREIGN_GPU_ADVERTISER\")].message}";
    let node = ["gpurdmanode", DGX_A100.0];
    let message = scenario::wait_value(&cluster, &node, path, 60, |text| !text.is_empty()).unwrap();
    assert!(message.contains("nvidia.com/gpu"), "{message}");
    drop(foreign);
    // The node is put right for the scenarios after this one: a reboot and a new start of the agent's memory.
    cluster
        .on_node(DGX_A100.0, ["rm", "-rf", "/var/lib/gpurdma"])
        .unwrap();
    cluster.reboot(DGX_A100.0).unwrap();
}
