use crds::cluster::{Driver, GpuDirect, GpuDirectMode};
use crds::fabric::{Fabric, LinkLayer};
use crds::node::NodeAddress;

use super::*;

fn of_driver(driver: Driver) -> Desired {
    Desired::of_config(NodeConfig {
        driver,
        ..NodeConfig::default()
    })
    .unwrap()
}

#[test]
fn nothing_asked_is_nothing_desired() {
    let desired = Desired::of_config(NodeConfig::default()).unwrap();
    assert!(desired.modules.is_empty() && desired.openib_conf.is_empty());
    assert_eq!((desired.findings, desired.unsupported), (vec![], vec![]));
}

#[test]
fn a_wrong_field_is_named_and_left_out() {
    let desired = of_driver(Driver {
        modules: vec!["ib-umad".to_owned(), "-r".to_owned()],
        openib_conf: [
            ("UMAD_LOAD", "yes"),
            ("POST_START_HOOK", "/x"),
            ("NODE_DESC", "$(id)"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        ..Driver::default()
    });
    assert_eq!(desired.modules.len(), 1);
    assert_eq!(
        desired.openib_conf.keys().collect::<Vec<_>>(),
        ["UMAD_LOAD"]
    );
    let wrong: Vec<_> = desired
        .findings
        .iter()
        .map(|f| f.component.as_str())
        .collect();
    let fields = [
        "driver.modules[1]",
        "driver.openibConf.NODE_DESC",
        "driver.openibConf.POST_START_HOOK",
    ];
    assert_eq!(wrong, fields);
}

#[test]
fn what_is_not_built_is_named() {
    let config = NodeConfig {
        gpu_direct: GpuDirect {
            mode: GpuDirectMode::DmaBuf,
            required: true,
        },
        fabric: Fabric {
            link_layer: Some(LinkLayer::InfiniBand),
            ..Fabric::default()
        },
        addresses: vec![NodeAddress {
            rail: 0,
            address: "10.0.0.1/24".to_owned(),
        }],
        ..NodeConfig::default()
    };
    let desired = Desired::of_config(config).unwrap();
    let fields = ["fabric.addresses", "gpuDirect.mode", "gpuDirect.required"];
    assert_eq!(desired.unsupported, fields);
    assert_eq!(desired.findings.len(), 3);
}

#[test]
fn the_keys_are_sorted_and_have_no_hooks() {
    assert!(OPENIB_KEYS.is_sorted());
    assert!(
        OPENIB_KEYS
            .iter()
            .all(|key| !key.contains("HOOK") && !key.contains("SCRIPT"))
    );
}
