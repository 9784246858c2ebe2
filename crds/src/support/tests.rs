use serde_json::json;

use super::*;

fn spec(value: serde_json::Value) -> GpuRdmaClusterSpec {
    serde_json::from_value(value).unwrap()
}

#[test]
fn an_empty_spec_asks_for_nothing_unbuilt() {
    assert_eq!(not_yet_supported(&spec(json!({}))), Vec::<&str>::new());
    assert_eq!(
        not_yet_supported(&spec(
            json!({"mode": "Enforce", "driver": {"modules": ["ib_umad"], "source": "HostPackages"}, "gpuDirect": {"mode": "Auto", "required": true}})
        )),
        [""; 0]
    );
    let tuned = json!({
        "tuning": {"acs": "Disable", "maxReadRequestBytes": 4096, "rdmaNetns": "Shared"},
        "fabric": {"linkLayer": "Ethernet", "firewall": "Report"},
    });
    assert_eq!(not_yet_supported(&spec(tuned)), [""; 0]);
}

#[test]
fn each_unbuilt_field_is_named_and_nothing_else() {
    let takeover = spec(json!({"devicePlugin": {"takeover": "Adopt"}}));
    assert_eq!(not_yet_supported(&takeover), ["devicePlugin.takeover"]);
}

#[test]
fn everything_of_the_fabric_is_supported() {
    let built = spec(json!({"fabric": {
        "rdmaMtu": 4096,
        "infiniband": {},
        "roce": {},
        "trafficClasses": [{"name": "gpu", "priority": 3, "share": 50}],
        "rails": [{"match": {}, "rail": 0}],
        "addresses": [{"rail": 0, "cidr": "10.0.0.0/16"}],
    }}));
    assert_eq!(not_yet_supported(&built), [""; 0]);
}

#[test]
fn each_injected_variable_is_named() {
    for name in [
        "ncclTopoFile",
        "ncclIbHca",
        "ucxNetDevices",
        "nvshmemHcaList",
    ] {
        let inject = spec(json!({"devicePlugin": {"inject": {name: true}}}));
        assert_eq!(
            not_yet_supported(&inject),
            [format!("devicePlugin.inject.{name}")]
        );
    }
}

#[test]
fn paths_are_sorted() {
    let all =
        spec(json!({"devicePlugin": {"takeover": "Adopt", "inject": {"ncclTopoFile": true}}}));
    assert_eq!(
        not_yet_supported(&all),
        ["devicePlugin.inject.ncclTopoFile", "devicePlugin.takeover"]
    );
}
