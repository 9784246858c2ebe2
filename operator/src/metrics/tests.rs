use super::*;

#[test]
fn names_carry_one_total_and_phases_without_nodes_are_zero() {
    let metrics = Metrics::default();
    metrics.reconciled();
    metrics.failed("conflict");
    metrics.nodes("c", &BTreeMap::from([("Ready", 3)]));
    let text = metrics.text();
    for line in [
        "gpu_rdma_operator_reconciles_total 1",
        "gpu_rdma_operator_errors_total{category=\"conflict\"} 1",
        "gpu_rdma_operator_nodes{cluster=\"c\",phase=\"Ready\"} 3",
        "gpu_rdma_operator_nodes{cluster=\"c\",phase=\"Degraded\"} 0",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
}

#[test]
fn a_cluster_that_is_gone_leaves_no_series() {
    let metrics = Metrics::default();
    metrics.nodes("c", &BTreeMap::new());
    metrics.forget("c");
    assert!(!metrics.text().contains("cluster=\"c\""));
}
