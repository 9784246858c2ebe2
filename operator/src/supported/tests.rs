use super::*;

#[test]
fn the_default_uses_nothing_unbuilt() {
    assert!(not_yet(&GpuRdmaClusterSpec::default()).is_empty());
}

#[test]
fn fields_are_named_in_order() {
    let container = crds::cluster::DriverContainer {
        precompiled: Precompiled::Require,
        ..Default::default()
    };
    let mut spec = GpuRdmaClusterSpec::default();
    spec.driver.container = Some(container);
    spec.device_plugin.takeover = crds::cluster::Takeover::Adopt;
    assert_eq!(
        not_yet(&spec),
        [
            "devicePlugin.takeover",
            "driver.container.precompiled=Require"
        ]
    );
}
