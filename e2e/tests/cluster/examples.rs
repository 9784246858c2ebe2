//! The pods of `docs/examples` run, and get what the page says. Only what they run and where is replaced.

use e2e::cluster::Cluster;
use e2e::{examples, scenario};
use serde_json::{Value, json};

use super::pods::{assert_right, assert_right_beside};
use super::support::{DGX_A100, Other, Pods, cluster};

const SHARED: &str = "rdma/shared";

/// The pod of an example as it runs here: no GPU's image, on the node that its machine is.
fn pod(example: &str) -> Value {
    let mut pod = examples::object(example, "Pod").unwrap();
    pod["spec"]["nodeSelector"] = here();
    let container = pod["spec"]["containers"][0].as_object_mut().unwrap();
    container.remove("args");
    container.insert("image".into(), json!("localhost/busybox:1"));
    container.insert("command".into(), json!(["/bin/sleep", "1000000"]));
    pod
}

fn here() -> Value {
    json!({"kubernetes.io/hostname": DGX_A100.0})
}

/// Network namespace of a pod's container.
fn network(cluster: &Cluster, pod: &str) -> String {
    let read = ["/bin/busybox", "readlink", "/proc/self/ns/net"];
    let link = scenario::in_pod(cluster, pod, &read).unwrap();
    link.trim().to_owned()
}

/// Network namespace of the node.
fn host_network(cluster: &Cluster) -> String {
    let read = ["readlink", "/proc/self/ns/net"];
    let link = cluster.on_node(DGX_A100.0, read).unwrap();
    link.trim().to_owned()
}

#[test]
fn whole_node() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run_as(&pod("whole-node"));
    let granted = scenario::granted(&cluster, "whole-node").unwrap();
    assert_right(&granted, DGX_A100.1, 8);
    assert_ne!(network(&cluster, "whole-node"), host_network(&cluster));
}

#[test]
fn four_of_eight_in_the_hosts_network() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run_as(&pod("four-of-eight-roce-hostnetwork"));
    let granted = scenario::granted(&cluster, "four-of-eight").unwrap();
    assert_right(&granted, DGX_A100.1, 4);
    assert_eq!(network(&cluster, "four-of-eight"), host_network(&cluster));
}

#[test]
fn storage_nic_beside_pairs() {
    let cluster = cluster();
    let mut spec =
        examples::object("storage-beside-pairs", "GpuRdmaCluster").unwrap()["spec"].take();
    spec["nodeSelector"] = json!({"matchLabels": here()});
    // Before the cluster that all scenarios share.
    spec["priority"] = json!(10);
    let other = Other::apply(&cluster, "storage-example", &spec);
    // Two ports, eight containers each.
    scenario::wait_allocatable(&cluster, DGX_A100.0, SHARED, 16).unwrap();
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, 8).unwrap();

    let mut pods = Pods::new(&cluster);
    pods.run_as(&pod("storage-beside-pairs"));
    let granted = scenario::granted(&cluster, "storage-beside-pairs").unwrap();
    assert_right_beside(&granted, DGX_A100.1, 4, 1);
    let nic = storage_nic(&cluster, "storage-beside-pairs");
    assert!(["mlx5_8", "mlx5_9"].contains(&nic.as_str()), "{nic}");
    assert!(granted.pairs.values().all(|pair| !pair.nics.contains(&nic)));
    let verbs = format!("/dev/infiniband/{}", verbs(&cluster, &nic));
    assert!(granted.devices.contains(&verbs), "{verbs}: {granted:?}");

    drop(pods);
    drop(other);
    scenario::wait_allocatable(&cluster, DGX_A100.0, SHARED, 0).unwrap();
}

/// RDMA name of the one NIC that is described to the container beside its pairs.
fn storage_nic(cluster: &Cluster, pod: &str) -> String {
    let variables = scenario::in_pod(cluster, pod, &["env"]).unwrap();
    let described = variables
        .lines()
        .find_map(|line| line.strip_prefix("GPURDMA_NICS="));
    let described: Value = serde_json::from_str(described.unwrap()).unwrap();
    assert_eq!(described.as_array().map(Vec::len), Some(1), "{described}");
    described[0]["nics"][0]["rdma"].as_str().unwrap().to_owned()
}

/// `uverbs8`: the device node's name of an RDMA device.
fn verbs(cluster: &Cluster, nic: &str) -> String {
    let folder = format!("/sys/class/infiniband/{nic}/device/infiniband_verbs");
    let listing = cluster.on_node(DGX_A100.0, ["ls", &folder]).unwrap();
    listing.trim().to_owned()
}
