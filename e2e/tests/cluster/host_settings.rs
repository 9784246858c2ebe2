//! What the agent does to a host, and what it leaves alone.

use e2e::cluster::Cluster;
use e2e::scenario;
use serde_json::json;

use super::support::{DGX_A100, cluster, enforce};

/// Every file of the node's disk and `/run` that changed, but for the kubelet's and containerd's own.
fn changed_since(cluster: &Cluster, mark: &str) -> Vec<String> {
    let find = format!(
        "find /etc /run /var /usr /opt $(ls -d /lib/modules 2>/dev/null) -xdev -newer {mark} -type f"
    );
    let listing = cluster.on_node(DGX_A100.0, ["sh", "-c", &find]).unwrap();
    let own = [
        "/run/gpurdma/",
        "/var/lib/gpurdma/",
        "/run/cdi/",
        "/var/run/cdi/",
    ];
    let others = [
        "/run/containerd",
        "/var/lib/kubelet",
        "/var/log",
        "/var/lib/cni",
        "/run/netns",
        "/var/tmp/gpurdma-e2e",
        "/run/machine",
    ];
    let is = |path: &str, list: &[&str]| list.iter().any(|prefix| path.starts_with(prefix));
    listing
        .lines()
        .filter(|path| !is(path, &own) && !is(path, &others))
        .map(str::to_owned)
        .collect()
}

#[test]
fn enforce_with_all_else_empty_writes_only_its_own_folders() {
    let cluster = cluster();
    cluster.on_node(DGX_A100.0, ["touch", "/tmp/mark"]).unwrap();
    cluster
        .on_node(
            DGX_A100.0,
            ["rm", "-rf", "/run/gpurdma/node.json", "/var/lib/gpurdma"],
        )
        .unwrap();
    // Nobody remembers any more that a module of another scenario is ours to unload.
    let _ = cluster.on_node(DGX_A100.0, ["rmmod", "ib_umad"]);
    scenario::wait_allocatable(&cluster, DGX_A100.0, scenario::RESOURCE, 8).unwrap();
    let seen = || {
        cluster
            .on_node(DGX_A100.0, ["cat", "/run/gpurdma/node.json"])
            .ok()
    };
    e2e::progress::wait_for("the node file to be back", 60, seen).unwrap();
    assert_eq!(changed_since(&cluster, "/tmp/mark"), Vec::<String>::new());
}

#[test]
fn modules_and_openib_conf_follow_the_cluster() {
    let cluster = cluster();
    let before = "# site settings\nONBOOT=yes\nUMAD_LOAD=no   # quiet\nSITE_KEY=kept\n";
    cluster
        .on_node(DGX_A100.0, ["mkdir", "-p", "/etc/infiniband"])
        .unwrap();
    let write = format!("printf '%s' '{before}' >/etc/infiniband/openib.conf");
    cluster.on_node(DGX_A100.0, ["sh", "-c", &write]).unwrap();
    enforce(
        &cluster,
        &json!({"driver": {"modules": ["ib_umad"], "openibConf": {"UMAD_LOAD": "yes"}}}),
    )
    .unwrap();
    let read = || {
        cluster
            .on_node(DGX_A100.0, ["cat", "/etc/infiniband/openib.conf"])
            .ok()
    };
    let text = e2e::progress::wait_for("openib.conf to follow", 60, || {
        read().filter(|text| text.contains("UMAD_LOAD=yes"))
    })
    .unwrap();
    assert!(
        text.contains("# site settings")
            && text.contains("SITE_KEY=kept")
            && text.contains("ONBOOT=yes"),
        "{text}"
    );
    // The agent's way to the module: the node's modprobe. /sys/module shows it on every kernel.
    let state = || {
        cluster
            .on_node(DGX_A100.0, ["cat", "/sys/module/ib_umad/initstate"])
            .ok()
    };
    let loaded = e2e::progress::wait_for("ib_umad to be loaded", 60, state).unwrap();
    assert_eq!(loaded.trim(), "live");
    let calls = cluster
        .on_node(DGX_A100.0, ["cat", "/run/machine/modprobe.log"])
        .unwrap();
    // kube-proxy asks for modules of its own.
    assert!(
        calls.lines().any(|line| line == "modprobe -- ib_umad"),
        "{calls}"
    );
    enforce(&cluster, &json!({"driver": {}})).unwrap();
}
