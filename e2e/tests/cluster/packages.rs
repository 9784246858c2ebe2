//! `driver.source: HostPackages` with the node's real apt and a signed repository: granted, drained, installed, verified and
//! released one node after the other; killed in the middle and finished; taken back.

use std::collections::BTreeSet;

use e2e::cluster::Cluster;
use e2e::repository::{self, Repository};
use e2e::{progress, scenario};
use serde_json::{Value, json};

use super::support::{
    AZURE, DGX_2, DGX_A100, NODES, Pods, cluster, enforce, record_no_users, tainted,
    wait_all_advertised,
};

const PACKAGE: &str = "site-rdma";

/// The repository, served on every node while the scenario runs.
struct Site<'a> {
    cluster: &'a Cluster,
    key: String,
}

impl<'a> Site<'a> {
    fn open(cluster: &'a Cluster) -> Self {
        let repository = Repository::make(cluster, PACKAGE, &["1.0-1", "1.1-1"]).unwrap();
        for (node, _) in NODES {
            record_no_users(cluster, node);
            clear_marks(cluster, node);
            repository.serve(cluster, node).unwrap();
        }
        let key = repository.key;
        Self { cluster, key }
    }

    /// Asks for a version of the package on the nodes with these labels.
    fn ask(&self, version: &str, labels: &Value) {
        let repositories = json!([{"url": repository::URL, "signingKey": self.key}]);
        let packages =
            json!({"version": version, "packages": [PACKAGE], "repositories": repositories});
        let spec = json!({
            "mode": "Enforce", "deletionPolicy": "Restore", "nodeSelector": {"matchLabels": labels},
            "driver": {"source": "HostPackages", "hostPackages": packages},
            "upgrade": {"maxUnavailable": 1, "workloads": "Wait"},
        });
        scenario::apply(self.cluster, &scenario::gpu_rdma_cluster("all", &spec)).unwrap();
    }

    fn wait_installed(&self, node: &str, version: &str) {
        let wanted = format!("ii  {version}");
        let done = || (state(self.cluster, node) == wanted).then_some(());
        progress::wait_for(&format!("{PACKAGE} {version} on {node}"), 120, done).unwrap();
    }

    /// Takes everything back and leaves the cluster as it was.
    fn restore(&self) {
        self.cluster
            .kubectl(["delete", "gpurdmacluster", "all", "--timeout=180s"])
            .unwrap();
        for (node, _) in NODES {
            assert_eq!(state(self.cluster, node), "", "{node}");
            let ours = "ls /etc/apt/sources.list.d /etc/apt/keyrings | grep gpurdma || true";
            assert_eq!(
                self.cluster.on_node(node, ["sh", "-c", ours]).unwrap(),
                "",
                "{node}"
            );
        }
        enforce(self.cluster, &json!({})).unwrap();
        wait_all_advertised(self.cluster);
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        for (node, _) in NODES {
            let _ = Repository::end(self.cluster, node);
        }
    }
}

/// State and version of the package, as dpkg says; empty where it is not installed.
fn state(cluster: &Cluster, node: &str) -> String {
    let query = [
        "dpkg-query",
        "-W",
        "-f",
        "${db:Status-Abbrev} ${Version}",
        PACKAGE,
    ];
    let state = cluster.on_node(node, query).unwrap_or_default();
    if state.starts_with("un") {
        String::new()
    } else {
        state
    }
}

fn granted(cluster: &Cluster, node: &str) -> bool {
    let path = "{.spec.maintenance.grantedPlan}";
    scenario::value(cluster, &["gpurdmanode", node], path).is_ok_and(|plan| !plan.is_empty())
}

/// Waits until a node has neither grant nor taint.
fn wait_released(cluster: &Cluster, node: &str) {
    let released = || {
        let tainted = tainted(cluster).iter().any(|name| name == node);
        (!tainted && !granted(cluster, node)).then_some(())
    };
    progress::wait_for(&format!("{node} to be released"), 120, released).unwrap();
}

fn kill_operator(cluster: &Cluster) {
    let selector = "app.kubernetes.io/component=operator";
    let how = ["--force", "--grace-period=0", "--wait=false"];
    let delete = ["delete", "pod", "-n", scenario::NAMESPACE, "-l", selector];
    cluster.kubectl(delete.into_iter().chain(how)).unwrap();
}

fn slow(cluster: &Cluster, node: &str) {
    let path = format!("/run/{PACKAGE}-slow");
    cluster.on_node(node, ["touch", &path]).unwrap();
}

fn wait_begun(cluster: &Cluster, node: &str) {
    let path = format!("/run/{PACKAGE}-begun");
    let begun = || cluster.on_node(node, ["test", "-e", &path]).ok();
    progress::wait_for(&format!("the installation on {node} to begin"), 120, begun).unwrap();
}

/// Forgets what an installation left on a node.
fn clear_marks(cluster: &Cluster, node: &str) {
    let (begun, slow) = (
        format!("/run/{PACKAGE}-begun"),
        format!("/run/{PACKAGE}-slow"),
    );
    cluster.on_node(node, ["rm", "-f", &begun, &slow]).unwrap();
}

#[test]
fn nodes_are_changed_one_by_one_with_the_operator_killed_at_each_step_and_a_foreign_cordon_left() {
    let cluster = cluster();
    let site = Site::open(&cluster);
    cluster.kubectl(["cordon", AZURE.0]).unwrap();
    let mut pods = Pods::new(&cluster);
    pods.run("holder", DGX_A100.0, 1);
    slow(&cluster, DGX_A100.0);
    let mut most = BTreeSet::new();
    let mut wait_changed = |node: &str| {
        let done = || {
            most.insert(tainted(&cluster).len());
            (state(&cluster, node) == "ii  1.0-1").then_some(())
        };
        progress::wait_for(&format!("{node} to be changed"), 180, done).unwrap();
    };
    site.ask("1.0-1", &json!({}));
    // A cordon of someone else has the only slot: the node itself may be changed meanwhile, no other one.
    wait_changed(AZURE.0);
    wait_released(&cluster, AZURE.0);
    let cordoned = scenario::value(&cluster, &["node", AZURE.0], "{.spec.unschedulable}").unwrap();
    assert_eq!(cordoned, "true", "a cordon of someone else stays");
    assert_eq!(state(&cluster, DGX_2.0), "", "the slot is taken");
    cluster.kubectl(["uncordon", AZURE.0]).unwrap();
    wait_changed(DGX_2.0);
    // The taint is set, the grant waits for the pod.
    let waits = || (tainted(&cluster) == [DGX_A100.0]).then_some(());
    progress::wait_for("node-0 to wait for its pod", 90, waits).unwrap();
    assert!(!granted(&cluster, DGX_A100.0), "a pod holds a pair there");
    kill_operator(&cluster);
    drop(pods);
    // The grant is written, the agent is at work.
    wait_begun(&cluster, DGX_A100.0);
    assert!(granted(&cluster, DGX_A100.0));
    kill_operator(&cluster);
    site.wait_installed(DGX_A100.0, "1.0-1");
    // The change is done and verified, the node is not released yet, or just now.
    kill_operator(&cluster);
    wait_released(&cluster, DGX_A100.0);
    assert_eq!(most.last(), Some(&1), "one node after the other");
    for (node, _) in NODES {
        clear_marks(&cluster, node);
    }
    site.restore();
}

#[test]
fn an_installation_that_is_killed_in_the_middle_is_finished() {
    let cluster = cluster();
    let site = Site::open(&cluster);
    let labels = json!({"kubernetes.io/hostname": DGX_A100.0});
    site.ask("1.0-1", &labels);
    site.wait_installed(DGX_A100.0, "1.0-1");
    clear_marks(&cluster, DGX_A100.0);
    slow(&cluster, DGX_A100.0);
    site.ask("1.1-1", &labels);
    wait_begun(&cluster, DGX_A100.0);
    clear_marks(&cluster, DGX_A100.0);
    let kill = "pkill -9 -x node-agent; pkill -9 -x apt-get; pkill -9 -x dpkg; pkill -9 -f site-rdma[.]postinst; true";
    cluster.on_node(DGX_A100.0, ["sh", "-c", kill]).unwrap();
    let broken = state(&cluster, DGX_A100.0);
    assert!(
        broken.starts_with("iF") || broken.starts_with("iU"),
        "{broken}"
    );
    site.wait_installed(DGX_A100.0, "1.1-1");
    wait_released(&cluster, DGX_A100.0);
    site.restore();
}
