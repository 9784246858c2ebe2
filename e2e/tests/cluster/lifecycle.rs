//! Upgrade, uninstall under a running pod, reinstall.

use e2e::scenario;

use super::support::{DGX_A100, Pods, cluster, expected};

#[test]
fn an_upgrade_that_changes_a_log_level_disturbs_nobody() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("worker", DGX_A100.0, 4);
    let before = scenario::granted(&cluster, "worker").unwrap();
    scenario::install_chart(&cluster, &["--set", "agent.logLevel=debug"]).unwrap();
    scenario::wait_allocatable(
        &cluster,
        DGX_A100.0,
        scenario::RESOURCE,
        expected(DGX_A100.1).len(),
    )
    .unwrap();
    assert_eq!(scenario::granted(&cluster, "worker").unwrap(), before);
    let taints = scenario::value(&cluster, &["node", DGX_A100.0], "{.spec.taints}").unwrap();
    assert_eq!(taints, "", "an upgrade taints no node");
    scenario::install_chart(&cluster, &[]).unwrap();
}

#[test]
fn uninstall_leaves_running_pods_alone_and_reinstall_picks_up() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("survivor", DGX_A100.0, 4);
    let before = scenario::granted(&cluster, "survivor").unwrap();
    scenario::uninstall_chart(&cluster).unwrap();
    let ours = ["daemonset", "-n", scenario::NAMESPACE];
    assert_eq!(
        scenario::value(&cluster, &ours, "{.items[*].metadata.name}").unwrap(),
        ""
    );
    let label = scenario::value(
        &cluster,
        &["node", DGX_A100.0],
        "{.metadata.labels.gpurdma\\.dev/plugin}",
    )
    .unwrap();
    assert_eq!(label, "");
    assert_eq!(scenario::granted(&cluster, "survivor").unwrap(), before);
    let kept = scenario::value(&cluster, &["gpurdmacluster", "all"], "{.spec.mode}").unwrap();
    assert_eq!(kept, "Enforce");
    scenario::install_chart(&cluster, &[]).unwrap();
    scenario::wait_allocatable(
        &cluster,
        DGX_A100.0,
        scenario::RESOURCE,
        expected(DGX_A100.1).len(),
    )
    .unwrap();
    assert_eq!(scenario::granted(&cluster, "survivor").unwrap(), before);
}
