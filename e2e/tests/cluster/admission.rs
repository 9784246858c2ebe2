//! What is refused, and with which words.

use e2e::scenario;
use serde_json::json;

use super::support::{DGX_A100, cluster};

#[test]
fn a_bad_cluster_is_refused_with_our_message() {
    let cluster = cluster();
    let resource = json!({"name": "rdma/gpudirect", "kind": "Pair"});
    let spec =
        json!({"devicePlugin": {"resources": [resource, {"name": "rdma/other", "kind": "Pair"}]}});
    let error = scenario::apply(&cluster, &scenario::gpu_rdma_cluster("bad", &spec)).unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("has more than one entry of kind Pair: keep one"),
        "{error}"
    );
}

#[test]
fn an_agent_cannot_write_another_nodes_status() {
    let cluster = cluster();
    let token = [
        "create",
        "token",
        "gpu-rdma-agent",
        "-n",
        scenario::NAMESPACE,
    ];
    // Bound to no pod, so without a node claim: refused like one of another node.
    let token = cluster.kubectl(token).unwrap();
    let patch = r#"{"status":{"bootId":"forged"}}"#;
    let arguments = [
        "patch",
        "gpurdmanode",
        DGX_A100.0,
        "--subresource=status",
        "--type=merge",
        "-p",
        patch,
    ];
    let login = [
        "--kubeconfig=/dev/null",
        "--server=https://10.245.0.1:6443",
        "--insecure-skip-tls-verify",
        "--token",
    ];
    let refused = cluster
        .kubectl(login.into_iter().chain([token.trim()]).chain(arguments))
        .unwrap_err();
    let refused = format!("{refused:#}");
    assert!(refused.contains("ValidatingAdmissionPolicy"), "{refused}");
}

#[test]
fn without_a_node_file_every_device_is_unhealthy() {
    let cluster = cluster();
    let stop = ["rm", "-f", "/run/gpurdma/node.json"];
    cluster
        .kubectl([
            "label",
            "--overwrite",
            "node",
            DGX_A100.0,
            "scenario=no-agent",
        ])
        .unwrap();
    // The agent writes the file again within seconds: stop it first.
    cluster
        .on_node(DGX_A100.0, ["pkill", "-STOP", "-x", "node-agent"])
        .unwrap();
    cluster.on_node(DGX_A100.0, stop).unwrap();
    let gone = scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, 0);
    cluster
        .on_node(DGX_A100.0, ["pkill", "-CONT", "-x", "node-agent"])
        .unwrap();
    gone.unwrap();
}
