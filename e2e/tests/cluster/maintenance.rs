//! Costly changes: planned in public, granted one node after the other, never while a pod holds what they would break.

use std::cell::Cell;

use e2e::cluster::Cluster;
use e2e::{progress, scenario};
use serde_json::json;

use super::support::{
    AZURE, DGX_2, DGX_A100, NODES, Pods, cluster, enforce, record_no_users, tainted,
    wait_all_advertised,
};

fn has_module(cluster: &Cluster, node: &str) -> bool {
    let state = cluster.on_node(node, ["cat", "/sys/module/ib_umad/initstate"]);
    state.is_ok_and(|state| state.trim() == "live")
}

fn asks_for_a_module(cluster: &Cluster, mode: &str) {
    let spec = json!({
        "mode": mode, "deletionPolicy": "Restore", "driver": {"modules": ["ib_umad"]},
        "upgrade": {"maxUnavailable": 1, "workloads": "Wait"},
    });
    scenario::apply(cluster, &scenario::gpu_rdma_cluster("all", &spec)).unwrap();
}

#[test]
fn mode_plan_shows_the_plan_and_does_nothing() {
    let cluster = cluster();
    asks_for_a_module(&cluster, "Plan");
    let node = ["gpurdmanode", DGX_2.0];
    let path = "{.status.plan.actions[*].kind}";
    scenario::wait_value(&cluster, &node, path, 60, |kinds| kinds == "LoadModule").unwrap();
    assert!(!has_module(&cluster, DGX_2.0));
    enforce(&cluster, &json!({})).unwrap();
}

#[test]
fn a_restore_goes_node_by_node_waits_for_pods_and_releases_what_it_is_done_with() {
    let cluster = cluster();
    for (node, _) in NODES {
        record_no_users(&cluster, node);
    }
    asks_for_a_module(&cluster, "Enforce");
    for (node, _) in NODES {
        let loaded = || has_module(&cluster, node).then_some(());
        progress::wait_for(&format!("ib_umad on {node}"), 60, loaded).unwrap();
    }
    let mut pods = Pods::new(&cluster);
    pods.run("holder", DGX_A100.0, 1);
    let delete = ["delete", "gpurdmacluster", "all", "--wait=false"];
    cluster.kubectl(delete).unwrap();
    let most = Cell::new(0);
    let look = || most.set(most.get().max(tainted(&cluster).len()));
    let idle_done = || {
        look();
        let idle = [AZURE.0, DGX_2.0];
        idle.iter()
            .all(|node| !has_module(&cluster, node))
            .then_some(())
    };
    progress::wait_for("the idle nodes to be restored", 120, idle_done).unwrap();
    let waits = || {
        look();
        (tainted(&cluster) == [DGX_A100.0]).then_some(())
    };
    progress::wait_for("node-0 to wait for its pod", 60, waits).unwrap();
    assert!(has_module(&cluster, DGX_A100.0), "a pod holds a pair there");
    let still = scenario::value(
        &cluster,
        &["gpurdmacluster", "all"],
        "{.metadata.deletionTimestamp}",
    );
    assert!(
        !still.unwrap().is_empty(),
        "the cluster waits for what it restores"
    );
    drop(pods);
    let gone = || {
        look();
        scenario::value(&cluster, &["gpurdmacluster", "all"], "{.kind}")
            .is_err()
            .then_some(())
    };
    progress::wait_for("the cluster to go", 120, gone).unwrap();
    assert!(!has_module(&cluster, DGX_A100.0));
    assert_eq!((most.get(), tainted(&cluster)), (1, Vec::new()));
    enforce(&cluster, &json!({})).unwrap();
    wait_all_advertised(&cluster);
}
