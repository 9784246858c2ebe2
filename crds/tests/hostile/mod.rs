//! Specifications with a text in them that is meant to break out, one in each place where a text can stand. The tests of
//! the rules, of the operator and of the agent share them: each has to refuse every one that reaches it.

#![allow(dead_code, reason = "each crate's tests use a part of it")]

use serde_json::{Map, Value, json};

/// What is tried: command substitution, other commands, further lines, options.
pub(super) const TEXTS: &[&str] = &[
    "$(reboot)",
    "`reboot`",
    "a;reboot",
    "a|reboot",
    "a&reboot",
    "a\nONBOOT=no",
    "--option=x",
    "-o",
];

/// Maps whose keys are the user's own.
pub(super) const MAPS: &[&str] = &["matchLabels", "openibConf", "env"];

/// Together they have every text of a `GpuRdmaCluster` that is no enumeration; each is right as it stands.
pub(super) fn specs() -> [Value; 2] {
    let container = json!({
        "nodeSelector": {
            "matchLabels": {"pool": "gpu"},
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
        },
        "driver": {
            "source": "Container",
            "container": {
                "repository": "nvcr.io/nvidia/mellanox", "image": "doca-driver", "version": "3.2",
                "env": {"UNLOAD_STORAGE_MODULES": "true"}, "imagePullSecrets": ["pull"],
            },
            "openibConf": {"UMAD_LOAD": "yes"},
            "modules": ["ib_umad"],
        },
        "nics": [{"match": {"pci": "0000:0c:00.0", "netdev": "eth2", "rdma": "mlx5_0"}, "role": "Storage"}],
        "fabric": {
            "rails": [{"match": {"pci": "0000:0d:*", "netdev": "ens1*", "rdma": "mlx5_*"}, "rail": 0}],
            "addresses": [{"rail": 0, "cidr": "10.10.0.0/16"}],
            "trafficClasses": [{"name": "gpu", "priority": 3, "share": 50}],
        },
        "devicePlugin": {"resources": [{"name": "rdma/gpudirect"}]},
        "upgrade": {"maxUnavailable": "10%", "waitTimeout": "30m"},
    });
    let packages = json!({
        "driver": {
            "source": "HostPackages",
            "hostPackages": {
                "version": "3.2.2",
                "packages": ["doca-ofed"],
                "repositories": [{
                    "url": "https://example.org/doca", "signingKey": "https://example.org/key",
                    "suite": "stable", "components": ["main"],
                }],
            },
        },
    });
    [container, packages]
}

/// The configuration that the operator makes of it for a node: without what concerns the operator alone, and with the
/// NICs' rails and the node's addresses.
pub(super) fn config(spec: &Value) -> Value {
    let mut config = spec.clone();
    if let Value::Object(fields) = &mut config {
        fields.retain(|name, _| name != "nodeSelector" && name != "upgrade");
    }
    config["rails"] = json!([{"pci": "0000:0c:00.0", "rail": 0}]);
    config["addresses"] = json!([{"rail": 0, "address": "10.10.0.7/16"}]);
    config
}

/// Each variant with one text replaced, and where.
pub(super) fn hostile(spec: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    replace(spec, "", &mut |place, value| {
        found.push((place.to_owned(), value));
    });
    found
}

/// Calls `seen` with every variant of `value`, the places below `place`.
fn replace(value: &Value, place: &str, seen: &mut dyn FnMut(&str, Value)) {
    match value {
        Value::String(_) => TEXTS.iter().for_each(|text| seen(place, json!(text))),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                replace(item, &format!("{place}[{index}]"), &mut |place, item| {
                    let mut changed = items.clone();
                    changed[index] = item;
                    seen(place, Value::Array(changed));
                });
            }
        }
        Value::Object(fields) => {
            if MAPS.iter().any(|map| place.ends_with(map)) {
                keys(fields, place, seen);
            }
            for (name, field) in fields {
                let below = if place.is_empty() {
                    name.clone()
                } else {
                    format!("{place}.{name}")
                };
                replace(field, &below, &mut |place, field| {
                    let mut changed = fields.clone();
                    changed.insert(name.clone(), field);
                    seen(place, Value::Object(changed));
                });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn keys(fields: &Map<String, Value>, place: &str, seen: &mut dyn FnMut(&str, Value)) {
    for text in TEXTS {
        let mut changed = fields.clone();
        changed.insert((*text).to_owned(), json!("yes"));
        seen(place, Value::Object(changed));
    }
}
