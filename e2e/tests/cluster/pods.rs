//! Pods get the pairs that PCIe says they should get, and nothing else.

use std::collections::BTreeSet;

use e2e::scenario::{self, Granted, Pair};

use super::support::{DGX_2, DGX_A100, Pods, cluster, expected};

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
