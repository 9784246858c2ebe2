use super::*;

#[test]
fn the_default_uses_nothing_unbuilt() {
    assert!(not_yet(&GpuRdmaClusterSpec::default()).is_empty());
}

#[test]
fn a_field_that_is_used_is_named() {
    let container = crds::cluster::DriverContainer {
        precompiled: Precompiled::Require,
        ..Default::default()
    };
    let mut spec = GpuRdmaClusterSpec::default();
    spec.driver.container = Some(container);
    assert_eq!(not_yet(&spec), ["driver.container.precompiled=Require"]);
}
