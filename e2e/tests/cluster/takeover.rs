//! GPUs that change hands between NVIDIA's device plugin and ours, in both directions, with pods running. A stand-in
//! advertises the same UUIDs and follows gpu-operator's node label, as the real plugin's DaemonSet does.

use std::collections::BTreeSet;

use e2e::cluster::Cluster;
use e2e::{product, scenario};
use serde_json::{Value, json};

use super::advertisers::{Foreign, wait_told};
use super::support::{DGX_2, DGX_A100, Pods, cluster, enforce, expected, wait_all_advertised};

const LABEL: &str = "nvidia.com/gpu.deploy.device-plugin";
const GPU: &str = "nvidia.com/gpu";

/// NVIDIA's plugin as gpu-operator deploys it, on the nodes of the scenario.
struct GpuOperator<'a> {
    cluster: &'a Cluster,
    nodes: Vec<&'a str>,
}

impl<'a> GpuOperator<'a> {
    fn start(cluster: &'a Cluster, nodes: &[&'a str]) -> Self {
        let own = Self {
            cluster,
            nodes: nodes.to_vec(),
        };
        scenario::apply(cluster, &daemon_set()).unwrap();
        for node in nodes {
            own.label(node, "true");
            let gpus = gpus(cluster, node);
            scenario::wait_allocatable(cluster, node, GPU, gpus).unwrap();
            scenario::wait_allocatable(cluster, node, scenario::RESOURCE, 0).unwrap();
        }
        own
    }

    fn label(&self, node: &str, value: &str) {
        let label = format!("{LABEL}={value}");
        self.cluster
            .kubectl(["label", "--overwrite", "node", node, &label])
            .unwrap();
    }
}

/// Everything as it was: with the plugin switched off and taken over nothing of it is remembered.
impl Drop for GpuOperator<'_> {
    fn drop(&mut self) {
        let cluster = self.cluster;
        let _ = cluster.kubectl(["delete", "daemonset", "nvidia-device-plugin", "--wait=true"]);
        for node in &self.nodes {
            self.label(node, "false");
        }
        enforce(cluster, &takeover("Adopt", scenario::RESOURCE)).unwrap();
        wait_all_advertised(cluster);
        enforce(cluster, &json!({})).unwrap();
        for node in &self.nodes {
            cluster
                .kubectl(["label", "node", node, &format!("{LABEL}-")])
                .unwrap();
        }
    }
}

fn daemon_set() -> Value {
    let program = product::own_binary().unwrap().display().to_string();
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "nvidia-device-plugin"},
        "spec": {
            "selector": {"matchLabels": {"app": "nvidia-device-plugin"}},
            "template": {
                "metadata": {"labels": {"app": "nvidia-device-plugin"}},
                "spec": {
                    "nodeSelector": {LABEL: "true"}, "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": false,
                    "containers": [{
                        "name": "plugin", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                        "command": ["/bin/busybox", "chroot", "/host", program, "foreign-advertiser", GPU],
                        "volumeMounts": [{"name": "host", "mountPath": "/host"}],
                    }],
                    "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
                },
            },
        },
    })
}

fn takeover(takeover: &str, resource: &str) -> Value {
    json!({"devicePlugin": {"takeover": takeover, "resources": [{"name": resource}]}})
}

fn gpus(cluster: &Cluster, node: &str) -> usize {
    let path = "{.status.summary.gpus}";
    scenario::value(cluster, &["gpurdmanode", node], path)
        .unwrap()
        .parse()
        .unwrap()
}

fn label(cluster: &Cluster, node: &str) -> String {
    scenario::value(
        cluster,
        &["node", node],
        &format!("{{.metadata.labels.{}}}", LABEL.replace('.', "\\.")),
    )
    .unwrap()
}

/// Starts a pod that asks for GPUs by NVIDIA's name.
fn run_gpus(pods: &mut Pods<'_>, cluster: &Cluster, name: &str, count: usize) {
    let mut pod = scenario::pod(name, Some(DGX_A100.0), 0);
    pod["spec"]["containers"][0]["resources"]["limits"] = json!({GPU: count.to_string()});
    pods.apply(&pod);
    scenario::wait_value(cluster, &["pod", name], "{.status.phase}", 90, |phase| {
        phase == "Running"
    })
    .unwrap();
}

/// Pairs that a pod was given by our plugin.
fn pairs(cluster: &Cluster, pod: &str) -> usize {
    scenario::granted(cluster, pod).unwrap().pairs.len()
}

/// Ids that the kubelet has given out on the node, in its own record.
fn given_out(cluster: &Cluster) -> Vec<String> {
    let file = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
    let text = cluster.on_node(DGX_A100.0, ["cat", file]).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    let entries = record["Data"]["PodDeviceEntries"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let by_numa = entries
        .iter()
        .filter_map(|entry| entry["DeviceIDs"].as_object());
    let ids = by_numa
        .flat_map(|ids| ids.values())
        .filter_map(Value::as_array)
        .flatten();
    ids.map(|id| id.as_str().unwrap().to_owned()).collect()
}

fn wait_row(cluster: &Cluster, node: &str, text: &str) {
    let path = format!("{{.status.nodes[?(@.name==\"{node}\")].message}}");
    scenario::wait_value(cluster, &["gpurdmacluster", "all"], &path, 60, |row| {
        row.contains(text)
    })
    .unwrap();
}

/// The other plugin comes and goes without anybody's doing: nothing is handed out by two, and the status says so.
fn comes_back_by_itself(cluster: &Cluster, all: usize) {
    let foreign = Foreign::start(cluster, DGX_A100.0);
    let message = wait_told(cluster, DGX_A100.0);
    assert!(message.contains(GPU), "{message}");
    scenario::wait_allocatable(cluster, DGX_A100.0, GPU, 0).unwrap();
    drop(foreign);
    scenario::wait_allocatable(cluster, DGX_A100.0, GPU, all).unwrap();
}

#[test]
fn under_the_same_name_a_node_changes_hands_and_back_while_its_pods_run() {
    let cluster = cluster();
    let all = expected(DGX_A100.1).len();
    let nvidia = GpuOperator::start(&cluster, &[DGX_A100.0]);
    let mut pods = Pods::new(&cluster);
    run_gpus(&mut pods, &cluster, "theirs", 3);

    enforce(&cluster, &takeover("Adopt", GPU)).unwrap();
    scenario::wait_value(
        &cluster,
        &["gpurdmanode", DGX_A100.0],
        "{.status.summary.admittedPairs}",
        120,
        |n| n == all.to_string(),
    )
    .unwrap();
    assert_eq!(label(&cluster, DGX_A100.0), "false");
    scenario::wait_allocatable(&cluster, DGX_A100.0, GPU, all).unwrap();
    run_gpus(&mut pods, &cluster, "ours", all - 3);
    assert_eq!(pairs(&cluster, "ours"), all - 3);
    let ids = given_out(&cluster);
    let distinct: BTreeSet<_> = ids.iter().collect();
    assert_eq!(
        (ids.len(), distinct.len()),
        (all, all),
        "no GPU is in two pods"
    );

    comes_back_by_itself(&cluster, all);
    drop(pods);
    let mut pods = Pods::new(&cluster);
    run_gpus(&mut pods, &cluster, "again", all);
    assert_eq!(pairs(&cluster, "again"), all);

    enforce(&cluster, &takeover("Never", GPU)).unwrap();
    scenario::wait_value(
        &cluster,
        &["node", DGX_A100.0],
        "{.metadata.annotations.gpurdma\\.dev/gpu-plugin-was}",
        90,
        str::is_empty,
    )
    .unwrap();
    assert_eq!(label(&cluster, DGX_A100.0), "true");
    let message = wait_told(&cluster, DGX_A100.0);
    assert!(message.contains(GPU), "{message}");
    scenario::wait_allocatable(&cluster, DGX_A100.0, GPU, all).unwrap();
    assert_eq!(given_out(&cluster).len(), all, "the pod keeps its devices");
    drop(pods);
    let mut pods = Pods::new(&cluster);
    run_gpus(&mut pods, &cluster, "back", all);
    assert_eq!(pairs(&cluster, "back"), 0, "given by the other plugin");
    drop(pods);
    drop(nvidia);
}

#[test]
fn under_another_name_a_node_changes_hands_and_back_once_it_is_free() {
    let cluster = cluster();
    let nodes = [DGX_A100.0, DGX_2.0];
    let nvidia = GpuOperator::start(&cluster, &nodes);
    let mut pods = Pods::new(&cluster);
    run_gpus(&mut pods, &cluster, "theirs", 1);

    enforce(&cluster, &takeover("Adopt", scenario::RESOURCE)).unwrap();
    scenario::wait_allocatable(
        &cluster,
        DGX_2.0,
        scenario::RESOURCE,
        expected(DGX_2.1).len(),
    )
    .unwrap();
    wait_row(&cluster, DGX_A100.0, "default/theirs");
    assert_eq!(
        (label(&cluster, DGX_A100.0), label(&cluster, DGX_2.0)),
        ("true".into(), "false".into())
    );
    drop(pods);
    let all = expected(DGX_A100.1).len();
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, all).unwrap();

    let mut pods = Pods::new(&cluster);
    pods.run("ours", DGX_A100.0, 1);
    enforce(&cluster, &takeover("Never", scenario::RESOURCE)).unwrap();
    wait_row(&cluster, DGX_A100.0, "default/ours");
    assert_eq!(label(&cluster, DGX_A100.0), "false");
    drop(pods);
    for node in nodes {
        scenario::wait_allocatable(&cluster, node, GPU, gpus(&cluster, node)).unwrap();
        scenario::wait_allocatable(&cluster, node, scenario::RESOURCE, 0).unwrap();
    }
    drop(nvidia);
}
