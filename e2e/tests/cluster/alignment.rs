//! NUMA hints reach the kubelet's Topology Manager.

use e2e::scenario;

use super::support::{AZURE, Pods, cluster};

#[test]
fn a_request_that_fits_one_numa_node_gets_pairs_of_one() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.run("aligned", AZURE.0, 4);
    let granted = scenario::granted(&cluster, "aligned").unwrap();
    let gpus: Vec<_> = granted
        .pairs
        .values()
        .map(|pair| pair.gpu.as_str())
        .collect();
    // GPU0 to GPU3 are on NUMA node 0, the others on node 1.
    let first_half = gpus.iter().filter(|gpu| **gpu < "GPU4").count();
    assert!(
        first_half == 0 || first_half == 4,
        "{gpus:?} span both NUMA nodes"
    );
}

#[test]
fn a_request_that_cannot_be_aligned_is_refused_by_the_kubelet() {
    let cluster = cluster();
    let mut pods = Pods::new(&cluster);
    pods.create("spanning", AZURE.0, 5);
    let reason = scenario::wait_value(
        &cluster,
        &["pod", "spanning"],
        "{.status.reason}",
        60,
        |text| !text.is_empty(),
    )
    .unwrap();
    assert_eq!(reason, "TopologyAffinityError");
}
