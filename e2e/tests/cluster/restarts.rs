//! Restarts keep or restore the right capacity.

use e2e::scenario;

use super::support::{DGX_A100, Pods, cluster, expected};

fn all() -> usize {
    expected(DGX_A100.1).len()
}

fn delete_component(cluster: &e2e::cluster::Cluster, component: &str) {
    let selector = format!("app.kubernetes.io/component={component}");
    let field = format!("spec.nodeName={}", DGX_A100.0);
    cluster
        .kubectl([
            "delete",
            "pod",
            "-n",
            scenario::NAMESPACE,
            "-l",
            &selector,
            "--field-selector",
            &field,
        ])
        .unwrap();
    let new = [
        "pod",
        "-n",
        scenario::NAMESPACE,
        "-l",
        &selector,
        "--field-selector",
        &field,
    ];
    let ready = "{.items[*].status.containerStatuses[*].ready}";
    scenario::wait_value(cluster, &new, ready, 60, |text| text == "true").unwrap();
}

#[test]
fn a_kubelet_restart_keeps_the_capacity_and_the_pods_devices() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("before", DGX_A100.0, 4);
    let before = scenario::granted(&cluster, "before").unwrap();
    cluster.restart_kubelet(DGX_A100.0).unwrap();
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, all()).unwrap();
    pods.run("after", DGX_A100.0, 4);
    let after = scenario::granted(&cluster, "after").unwrap();
    assert_eq!(scenario::granted(&cluster, "before").unwrap(), before);
    assert!(
        before.pairs.keys().all(|id| !after.pairs.contains_key(id)),
        "{before:?} {after:?}"
    );
}

#[test]
fn a_plugin_restart_restores_the_capacity() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("holder", DGX_A100.0, 4);
    let held = scenario::granted(&cluster, "holder").unwrap();
    delete_component(&cluster, "plugin");
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, all()).unwrap();
    pods.run("next", DGX_A100.0, 4);
    let next = scenario::granted(&cluster, "next").unwrap();
    assert!(
        held.pairs.keys().all(|id| !next.pairs.contains_key(id)),
        "{held:?} {next:?}"
    );
}

#[test]
fn an_agent_restart_takes_back_no_admission() {
    let cluster = cluster();
    let before = cluster
        .on_node(DGX_A100.0, ["cat", "/run/gpurdma/node.json"])
        .unwrap();
    delete_component(&cluster, "agent");
    let after = cluster
        .on_node(DGX_A100.0, ["cat", "/run/gpurdma/node.json"])
        .unwrap();
    assert_eq!(before, after);
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, all()).unwrap();
}

#[test]
fn a_reboot_restores_the_capacity_under_the_new_boot_id() {
    let mut cluster = cluster();
    cluster.reboot(DGX_A100.0).unwrap();
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, all()).unwrap();
    let boot_id = cluster
        .on_node(DGX_A100.0, ["cat", "/proc/sys/kernel/random/boot_id"])
        .unwrap();
    let file = cluster
        .on_node(DGX_A100.0, ["cat", "/run/gpurdma/node.json"])
        .unwrap();
    assert!(file.contains(boot_id.trim()), "{file}");
    let mut pods = Pods::new(&cluster);
    pods.run("booted", DGX_A100.0, all());
}
