use super::*;

#[test]
fn both_defaults_are_the_same() {
    assert_eq!(policies(&[]), [ResourcePolicy::default()]);
    assert_eq!(
        policies(&[Resource::default()]),
        [ResourcePolicy::default()]
    );
}

#[test]
fn every_field_arrives() {
    let text = "{name: rdma/far, kind: SharedNic, maxDistance: SYS, unknownDistance: ByOrder, nicsPerGpu: 2, nicSharing: Never, replicas: 7}";
    let wanted = ResourcePolicy {
        name: "rdma/far".to_owned(),
        kind: ResourceKind::SharedNic,
        max_distance: Distance::Sys,
        unknown_distance: UnknownDistance::ByOrder,
        nics_per_gpu: 2,
        nic_sharing: NicSharing::Never,
        replicas: 7,
    };
    assert_eq!(policies(&[serde_yaml::from_str(text).unwrap()]), [wanted]);
}
