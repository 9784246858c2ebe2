use serde_json::json;

use super::*;

fn config(value: Value) -> NodeConfig {
    serde_json::from_value(value).unwrap()
}

fn full() -> Value {
    json!({
        "driver": {
            "source": "Container",
            "container": {
                "repository": "nvcr.io/nvidia/mellanox", "image": "doca-driver", "version": "1",
                "precompiled": "Require", "env": {"A": "1", "B": "2"}, "imagePullSecrets": ["key"],
            },
            "hostPackages": {
                "version": "3.2.2", "packages": ["doca-ofed"],
                "repositories": [{"url": "https://a", "signingKey": "https://b", "suite": "s", "components": ["main"]}],
            },
            "openibConf": {"UMAD_LOAD": "yes"},
            "modules": ["ib_umad"],
        },
        "gpuDirect": {"mode": "DmaBuf", "required": true},
        "nics": [{"match": {"netdev": "eth0"}, "role": "Management"}],
        "fabric": {
            "linkLayer": "InfiniBand", "rdmaMtu": 4096,
            "infiniband": {"partitions": [{"pkey": 1, "membership": "Full"}], "ipoib": {"mode": "Datagram", "mtu": 4092}},
            "roce": {"netdevMtu": 9000, "version": "v2", "trafficClass": 106, "dscp": 26, "pfcPriorities": [3]},
            "rails": [{"match": {"netdev": "eth2"}, "rail": 0}],
            "addresses": [{"rail": 0, "cidr": "10.10.0.0/16"}],
            "firewall": "Report",
            "trafficClasses": [{"name": "gpu", "priority": 3, "share": 80}],
        },
        "tuning": {"acs": "Disable", "maxReadRequestBytes": 4096, "rdmaNetns": "Shared"},
        "devicePlugin": {"takeover": "Adopt", "giveBack": false, "onNicDown": "KeepGpu", "inject": {"ncclIbHca": true}},
        "rails": [{"pci": "0000:0c:00.0", "rail": 0}],
        "addresses": [{"rail": 0, "address": "10.10.0.7/16"}],
    })
}

/// Changes one value of the full configuration.
fn changed(pointer: &str, to: Value) -> NodeConfig {
    let mut value = full();
    *value
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("{pointer} is not in the configuration")) = to;
    let changed = config(value);
    assert_ne!(changed, config(full()), "{pointer} was not changed");
    changed
}

#[test]
fn install_hash_goldens() {
    // A change here drains every node of every user at the next upgrade.
    assert_eq!(
        install_hash(&NodeConfig::default()).unwrap(),
        "b6956535b692dc8e2327c6630ca6ba050b8d03c51049ff28c0df709119c3ef82"
    );
    assert_eq!(
        install_hash(&config(full())).unwrap(),
        "e49e593fd32976899c7de7c6c4683bcd6b5082e0b05b24bdbf436e2c28858f6a"
    );
}

#[test]
fn what_is_not_set_is_not_hashed() {
    let inputs = install_inputs(&NodeConfig::default()).unwrap();
    assert_eq!(
        inputs,
        json!({"driver": {"source": "Existing"}, "gpuDirect": {"mode": "Keep"}, "linkLayer": null, "tuning": {}}),
        "a field that is hashed at its default changes every node's hash when it is added"
    );
}

#[test]
fn every_install_input_changes_the_hash() {
    let before = install_hash(&config(full())).unwrap();
    let changes = [
        ("/driver/source", json!("Existing")),
        ("/driver/container", json!(null)),
        ("/driver/container/repository", json!("mirror.example.com")),
        ("/driver/container/image", json!("other")),
        ("/driver/container/version", json!("2")),
        ("/driver/container/precompiled", json!("Never")),
        ("/driver/container/env/A", json!("2")),
        ("/driver/container/imagePullSecrets/0", json!("other")),
        ("/driver/hostPackages", json!(null)),
        ("/driver/hostPackages/version", json!("3.2.3")),
        ("/driver/hostPackages/packages/0", json!("doca-all")),
        (
            "/driver/hostPackages/repositories/0/url",
            json!("https://c"),
        ),
        (
            "/driver/hostPackages/repositories/0/signingKey",
            json!("https://c"),
        ),
        ("/driver/hostPackages/repositories/0/suite", json!("t")),
        (
            "/driver/hostPackages/repositories/0/components/0",
            json!("other"),
        ),
        ("/driver/openibConf/UMAD_LOAD", json!("no")),
        ("/driver/modules/0", json!("ib_ipoib")),
        ("/gpuDirect/mode", json!("Peermem")),
        ("/gpuDirect/required", json!(false)),
        ("/fabric/linkLayer", json!("Ethernet")),
        ("/tuning/acs", json!(null)),
        ("/tuning/maxReadRequestBytes", json!(512)),
        ("/tuning/rdmaNetns", json!("Exclusive")),
    ];
    for (pointer, to) in changes {
        assert_ne!(
            install_hash(&changed(pointer, to)).unwrap(),
            before,
            "{pointer}"
        );
    }
}

#[test]
fn nothing_else_changes_the_hash() {
    let before = install_hash(&config(full())).unwrap();
    let changes = [
        ("/nics", json!([])),
        ("/fabric/rdmaMtu", json!(2048)),
        ("/fabric/infiniband", json!(null)),
        ("/fabric/roce", json!(null)),
        ("/fabric/rails", json!([])),
        ("/fabric/addresses", json!([])),
        ("/fabric/firewall", json!("Manage")),
        ("/fabric/trafficClasses", json!([])),
        ("/devicePlugin/takeover", json!("Never")),
        ("/devicePlugin/giveBack", json!(true)),
        ("/devicePlugin/onNicDown", json!("Unhealthy")),
        ("/devicePlugin/inject/ncclIbHca", json!(false)),
        ("/rails", json!([])),
        ("/addresses", json!([])),
    ];
    for (pointer, to) in changes {
        assert_eq!(
            install_hash(&changed(pointer, to)).unwrap(),
            before,
            "{pointer}"
        );
    }
}

#[test]
fn the_order_of_keys_is_of_no_matter() {
    let one: Value = serde_json::from_str(r#"{"b": [{"y": 1, "x": 2}], "a": null}"#).unwrap();
    let other: Value = serde_json::from_str(r#"{"a": null, "b": [{"x": 2, "y": 1}]}"#).unwrap();
    assert_eq!(hash(&one).unwrap(), hash(&other).unwrap());
    assert_eq!(
        serde_json::to_string(&sorted(&one)).unwrap(),
        r#"{"a":null,"b":[{"x":2,"y":1}]}"#
    );
}

#[test]
fn the_order_of_a_list_is() {
    assert_ne!(
        hash(&json!(["a", "b"])).unwrap(),
        hash(&json!(["b", "a"])).unwrap()
    );
}

fn action(kind: &str, target: &str, cost: Cost) -> ActionStatus {
    ActionStatus {
        kind: kind.to_owned(),
        target: target.to_owned(),
        desired: "yes".to_owned(),
        cost,
        ..Default::default()
    }
}

fn actions() -> Vec<ActionStatus> {
    vec![
        action("SetOpenibConf", "UMAD_LOAD", Cost::None),
        action("RestartDriver", "openibd", Cost::Traffic),
        action("Reboot", "node", Cost::Reboot),
    ]
}

#[test]
fn plan_hash_goldens() {
    // A change here revokes every grant that is out at the next upgrade.
    assert_eq!(
        plan_hash(&[], "").unwrap(),
        "7d03a401d00cbcb2355fc6193be3009349103c33a78644aa6dd5b3878724b39f"
    );
    assert_eq!(
        plan_hash(&actions(), &"a".repeat(64)).unwrap(),
        "28758e4f07aedf1163a8093a08aa61808e3c38e3cef3011cc2383105cf8717cc"
    );
}

#[test]
fn plan_hash_survives_partial_execution() {
    let before = plan_hash(&actions(), "i").unwrap();
    let mut later = actions();
    later.remove(0);
    later.reverse();
    later[0].attempts = 2;
    later[1].message = "waits for a pod".to_owned();
    assert_eq!(plan_hash(&later, "i").unwrap(), before);
}

#[test]
fn plan_hash_is_over_kind_target_desired_cost_and_install_hash() {
    let before = plan_hash(&actions(), "i").unwrap();
    let change: [fn(&mut ActionStatus); 4] = [
        |action| action.kind.push('x'),
        |action| action.target.push('x'),
        |action| action.desired.push('x'),
        |action| action.cost = Cost::None,
    ];
    for change in change {
        let mut later = actions();
        change(&mut later[1]);
        assert_ne!(plan_hash(&later, "i").unwrap(), before);
    }
    assert_ne!(plan_hash(&actions(), "j").unwrap(), before);
}
