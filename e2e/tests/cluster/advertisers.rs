//! A second advertiser of the same GPUs: nothing is advertised beside it, and the status says why.

use e2e::cluster::Cluster;
use e2e::{product, scenario};

use super::support::{DGX_A100, cluster};

/// Stops the stand-in when the scenario ends, also when it fails.
pub(crate) struct Foreign<'a> {
    cluster: &'a Cluster,
    node: &'a str,
}

impl<'a> Foreign<'a> {
    /// Another device plugin on the node that offers the same GPUs, by their UUIDs, as `nvidia.com/gpu`.
    pub(crate) fn start(cluster: &'a Cluster, node: &'a str) -> Self {
        let program = product::own_binary().unwrap().display().to_string();
        let script = format!(
            "setsid {program} foreign-advertiser nvidia.com/gpu >/run/foreign.log 2>&1 </dev/null &"
        );
        cluster.on_node(node, ["sh", "-c", &script]).unwrap();
        Self { cluster, node }
    }
}

impl Drop for Foreign<'_> {
    fn drop(&mut self) {
        let kill = ["pkill", "-f", "foreign-advertiser"];
        let _ = self.cluster.on_node(self.node, kill);
    }
}

/// Waits until the node's status tells of another advertiser, and says what it tells.
pub(crate) fn wait_told(cluster: &Cluster, node: &str) -> String {
    let path = "{.status.findings[?(@.id==\"FOREIGN_GPU_ADVERTISER\")].message}";
    let object = ["gpurdmanode", node];
    scenario::wait_value(cluster, &object, path, 60, |text| !text.is_empty()).unwrap()
}

#[test]
fn gpus_that_another_plugin_offers_are_not_advertised_and_the_status_says_why() {
    let mut cluster = cluster();
    let foreign = Foreign::start(&cluster, DGX_A100.0);
    scenario::wait_allocatable(&cluster, DGX_A100.0, "nvidia.com/gpu", 8).unwrap();
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, 0).unwrap();
    let message = wait_told(&cluster, DGX_A100.0);
    assert!(message.contains("nvidia.com/gpu"), "{message}");
    drop(foreign);
    // The node is put right for the scenarios after this one: a reboot and a new start of the agent's memory.
    cluster
        .on_node(DGX_A100.0, ["rm", "-rf", "/var/lib/gpurdma"])
        .unwrap();
    cluster.reboot(DGX_A100.0).unwrap();
}
