use super::*;

#[test]
fn the_default_uses_nothing_unbuilt() {
    assert!(not_yet(&GpuRdmaClusterSpec::default()).is_empty());
}

#[test]
fn fields_are_named_in_order() {
    let mut spec = GpuRdmaClusterSpec {
        deletion_policy: DeletionPolicy::Restore,
        ..GpuRdmaClusterSpec::default()
    };
    spec.upgrade.workloads = Workloads::Evict;
    spec.fabric.rdma_mtu = Some(4096);
    assert_eq!(
        not_yet(&spec),
        [
            "deletionPolicy=Restore",
            "fabric.rdmaMtu",
            "upgrade.workloads=Evict"
        ]
    );
}
