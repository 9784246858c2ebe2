use serde_json::Value;

use super::*;

fn schemas() -> Vec<(String, Value)> {
    let schema = |crd: CustomResourceDefinition| {
        let value = serde_json::to_value(&crd).unwrap();
        (
            crd.spec.names.kind,
            value
                .pointer("/spec/versions/0/schema/openAPIV3Schema")
                .unwrap()
                .clone(),
        )
    };
    crds().into_iter().map(schema).collect()
}

/// Every node of a schema with its path.
pub(crate) fn walk<'a>(path: &str, schema: &'a Value, visit: &mut impl FnMut(&str, &'a Value)) {
    visit(path, schema);
    let children = schema["properties"].as_object().into_iter().flatten();
    for (name, child) in children {
        walk(&format!("{path}.{name}"), child, visit);
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            walk(&format!("{path}{suffix}"), &schema[key], visit);
        }
    }
}

fn nodes(schemas: &[(String, Value)]) -> Vec<(String, &Value)> {
    let mut all = Vec::new();
    for (kind, schema) in schemas {
        walk(kind, schema, &mut |path, node| {
            all.push((path.to_owned(), node));
        });
    }
    all
}

#[test]
fn committed_yaml_is_in_sync() {
    let committed = [GPURDMACLUSTERS_YAML, GPURDMANODES_YAML];
    for (crd, committed) in crds().iter().zip(committed) {
        let (name, content) = file(crd).unwrap();
        assert!(
            content == committed,
            "{name} differs: run `cargo run -p crds --bin crdgen` and commit it"
        );
    }
}

#[test]
fn every_list_map_and_string_has_a_maximum() {
    let schemas = schemas();
    for (path, node) in nodes(&schemas) {
        let bounded = match node["type"].as_str() {
            Some("array") => node["maxItems"].is_u64(),
            Some("object") => {
                !node["additionalProperties"].is_object() || node["maxProperties"].is_u64()
            }
            Some("string") => {
                node["maxLength"].is_u64()
                    || node["enum"].is_array()
                    || node["format"] == "date-time"
            }
            _ => node["x-kubernetes-int-or-string"] != true || node["maxLength"].is_u64(),
        };
        assert!(bounded, "{path} has no maximum: {node}");
    }
}

#[test]
fn no_integer_is_stored_that_cannot_be_read_back() {
    let generation = |path: &str| path.ends_with("bservedGeneration");
    let schemas = schemas();
    for (path, node) in nodes(&schemas) {
        if node["format"] == "int64" && !generation(&path) {
            let maximum = node["maximum"].as_f64();
            assert!(
                maximum.is_some_and(|maximum| maximum <= f64::from(u32::MAX)),
                "{path} has no maximum that fits: {node}"
            );
        }
    }
}

#[test]
fn formats_are_those_of_openapi_and_no_field_takes_null() {
    let schemas = schemas();
    for (path, node) in nodes(&schemas) {
        let format = node["format"].as_str().unwrap_or("int32");
        assert!(
            ["int32", "int64", "date-time"].contains(&format),
            "{path}: format {format}"
        );
        let nullable_by_derive = path.ends_with(".status") && path.matches('.').count() == 1;
        assert!(
            node["nullable"] != true || nullable_by_derive,
            "{path} takes null"
        );
    }
}

#[test]
fn fields_without_effect_yet_and_statuses_have_no_default() {
    let unbuilt = [
        "fabric",
        "tuning",
        "inject",
        "hostPackages",
        "required",
        "status",
    ];
    let schemas = schemas();
    for (path, node) in nodes(&schemas) {
        let within = path
            .split(['.', '[', '{'])
            .any(|part| unbuilt.contains(&part));
        assert!(
            !within || node.get("default").is_none(),
            "{path} has the default {}",
            node["default"]
        );
        for name in unbuilt {
            assert!(
                node.pointer(&format!("/default/{name}")).is_none(),
                "{path} has a default for {name}"
            );
        }
    }
}

#[test]
fn lists_with_a_key_are_merged_by_it() {
    let schemas = schemas();
    let mut keyed: Vec<String> = nodes(&schemas)
        .into_iter()
        .filter(|(_, node)| node["x-kubernetes-list-type"] == "map")
        .map(|(path, node)| {
            format!(
                "{path} by {}",
                node["x-kubernetes-list-map-keys"][0].as_str().unwrap()
            )
        })
        .filter(|line| !line.contains(".config."))
        .collect();
    keyed.sort();
    insta::assert_snapshot!(keyed.join("\n"), @r"
    GpuRdmaCluster.spec.devicePlugin.resources by name
    GpuRdmaCluster.spec.fabric.addresses by rail
    GpuRdmaCluster.spec.fabric.infiniband.partitions by pkey
    GpuRdmaCluster.spec.fabric.trafficClasses by name
    GpuRdmaCluster.status.conditions by type
    GpuRdmaCluster.status.nodes by name
    GpuRdmaCluster.status.railLayouts by hash
    GpuRdmaCluster.status.railLayouts[].slots by pci
    GpuRdmaNode.status.conditions by type
    GpuRdmaNode.status.nics by pci
    GpuRdmaNode.status.otherAdvertisers by resource
    GpuRdmaNode.status.pairs by gpu
    ");
}

/// The API server takes no other schema.
#[test]
fn keys_of_lists_are_required() {
    let schemas = schemas();
    for (path, node) in nodes(&schemas) {
        let keys = node["x-kubernetes-list-map-keys"].as_array();
        for key in keys.into_iter().flatten().filter_map(Value::as_str) {
            let items = &node["items"];
            let required = items["required"].as_array().into_iter().flatten();
            let has_default = items["properties"][key].get("default").is_some();
            assert!(
                has_default || required.into_iter().any(|one| one == key),
                "{path} by {key}"
            );
        }
    }
}

#[test]
fn columns_show_the_state_at_a_glance() {
    let columns = |crd: &CustomResourceDefinition| {
        let columns = crd.spec.versions[0]
            .additional_printer_columns
            .clone()
            .unwrap_or_default();
        columns
            .into_iter()
            .map(|column| column.name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let all: Vec<_> = crds().iter().map(columns).collect();
    assert_eq!(
        all,
        [
            "Mode Matched Ready Pairs Status Age",
            "Cluster Phase GPUs NICs Pairs Reason Message Age"
        ]
    );
}
