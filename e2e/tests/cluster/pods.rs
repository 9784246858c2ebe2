//! Pods get the pairs that PCIe says they should get, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use e2e::cluster::Cluster;
use e2e::progress;
use e2e::scenario::{self, Granted, Pair};
use serde_json::json;

use super::support::{DGX_2, DGX_A100, Pods, cluster, enforce, expected};

/// Every granted pair is one that the machine file says, and its device nodes are there, and no others.
pub(crate) fn assert_right(granted: &Granted, machine: &str, pairs: usize) {
    assert_right_beside(granted, machine, pairs, 0);
}

/// The same where the container has other NICs too.
pub(crate) fn assert_right_beside(granted: &Granted, machine: &str, pairs: usize, others: usize) {
    let expected = expected(machine);
    assert_eq!(granted.pairs.len(), pairs, "{granted:?}");
    for Pair { gpu, nics, .. } in granted.pairs.values() {
        assert_eq!(expected.get(gpu), Some(nics), "{gpu} has the wrong NIC");
    }
    let gpus: BTreeSet<_> = granted
        .pairs
        .values()
        .map(|pair| pair.gpu.replace("GPU", "/dev/nvidia"))
        .collect();
    let seen: BTreeSet<_> = granted
        .devices
        .iter()
        .filter(|path| path.ends_with(|c: char| c.is_ascii_digit()))
        .cloned()
        .collect();
    let seen_gpus: BTreeSet<_> = seen
        .iter()
        .filter(|path| path.starts_with("/dev/nvidia"))
        .cloned()
        .collect();
    assert_eq!(seen_gpus, gpus, "GPU device nodes");
    let nics: BTreeSet<_> = granted
        .pairs
        .values()
        .flat_map(|pair| pair.nics.clone())
        .collect();
    let uverbs = seen
        .iter()
        .filter(|path| path.starts_with("/dev/infiniband/uverbs"))
        .count();
    assert_eq!(
        uverbs,
        nics.len() + others,
        "one uverbs node for each NIC: {:?}",
        granted.devices
    );
    assert!(
        granted
            .devices
            .contains(&"/dev/infiniband/rdma_cm".to_owned()),
        "{:?}",
        granted.devices
    );
    assert!(
        granted
            .devices
            .iter()
            .all(|path| !path.contains("umad") && !path.contains("issm")),
        "{:?}",
        granted.devices
    );
}

#[test]
fn one_pair() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("one", DGX_A100.0, 1);
    assert_right(&scenario::granted(&cluster, "one").unwrap(), DGX_A100.1, 1);
}

#[test]
fn four_pairs() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("four", DGX_A100.0, 4);
    assert_right(&scenario::granted(&cluster, "four").unwrap(), DGX_A100.1, 4);
}

#[test]
fn all_pairs_of_a_machine_with_more_gpus_than_nics() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    let all = expected(DGX_2.1).len();
    pods.run("all", DGX_2.0, all);
    assert_right(&scenario::granted(&cluster, "all").unwrap(), DGX_2.1, all);
}

#[test]
fn two_pods_never_share_a_pair() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("first", DGX_A100.0, 4);
    pods.run("second", DGX_A100.0, 4);
    let (first, second) = (
        scenario::granted(&cluster, "first").unwrap(),
        scenario::granted(&cluster, "second").unwrap(),
    );
    assert_right(&first, DGX_A100.1, 4);
    assert_right(&second, DGX_A100.1, 4);
    assert!(
        first.pairs.keys().all(|id| !second.pairs.contains_key(id)),
        "{first:?} {second:?}"
    );
}

#[test]
fn a_pod_for_more_pairs_than_exist_stays_pending_and_says_why() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.create("greedy", DGX_A100.0, 9);
    let events = [
        "events",
        "--field-selector",
        "involvedObject.name=greedy,reason=FailedScheduling",
    ];
    let message = scenario::wait_value(&cluster, &events, "{.items[*].message}", 60, |text| {
        text.contains("Insufficient")
    })
    .unwrap();
    assert!(message.contains("Insufficient rdma/gpudirect"), "{message}");
    assert_eq!(
        scenario::value(&cluster, &["pod", "greedy"], "{.status.phase}").unwrap(),
        "Pending"
    );
}

/// The variables of a container, as a program in it sees them.
fn variables(cluster: &Cluster, pod: &str) -> BTreeMap<String, String> {
    let text = scenario::in_pod(cluster, pod, &["env"]).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn libraries_are_told_the_containers_nics_and_the_pods_own_values_win() {
    let cluster = cluster();
    let all = json!({"ncclTopoFile": true, "ncclIbHca": true, "ucxNetDevices": true, "nvshmemHcaList": true});
    enforce(&cluster, &json!({"devicePlugin": {"inject": all}})).unwrap();
    let listed = || {
        let file = cluster
            .on_node(DGX_A100.0, ["cat", "/run/gpurdma/node.json"])
            .ok()?;
        file.contains("UCX_NET_DEVICES").then_some(())
    };
    progress::wait_for("the node file names the variables", 60, listed).unwrap();
    let mut pods = Pods::new(&cluster);
    pods.run("told", DGX_A100.0, 2);
    let granted = scenario::granted(&cluster, "told").unwrap();
    let mut nics: Vec<_> = granted
        .pairs
        .values()
        .flat_map(|pair| &pair.nics)
        .map(|nic| format!("{nic}:1"))
        .collect();
    nics.sort();
    let told = variables(&cluster, "told");
    let sorted = |name: &str| {
        let mut names: Vec<_> = told[name]
            .trim_start_matches('=')
            .split(',')
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    };
    assert!(told["NCCL_IB_HCA"].starts_with('='));
    for name in ["NCCL_IB_HCA", "UCX_NET_DEVICES", "NVSHMEM_HCA_LIST"] {
        assert_eq!(sorted(name), nics, "{name}");
    }
    let file = scenario::in_pod(&cluster, "told", &["cat", &told["NCCL_TOPO_FILE"]]).unwrap();
    assert!(file.starts_with("<system version=\"1\">"), "{file}");
    let mut own = scenario::pod("own", Some(DGX_A100.0), 1);
    own["spec"]["containers"][0]["env"] = json!([{"name": "NCCL_IB_HCA", "value": "mine"}]);
    pods.apply(&own);
    scenario::wait_value(&cluster, &["pod", "own"], "{.status.phase}", 90, |phase| {
        phase == "Running"
    })
    .unwrap();
    assert_eq!(variables(&cluster, "own")["NCCL_IB_HCA"], "mine");
    drop(pods);
    enforce(&cluster, &json!({})).unwrap();
}
