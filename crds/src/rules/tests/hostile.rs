//! Every text of the specification, tried with what is meant to break out of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{failures, schema};
use crate::crd::tests::walk;

#[path = "../../../tests/hostile/mod.rs"]
mod texts;

fn object(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "gpurdma.dev/v1alpha1", "kind": kind, "metadata": {"name": "hostile"}, "spec": spec,
    })
}

/// Paths of the texts in a value; every key of these maps is one.
fn given(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let is_map = texts::MAPS.iter().any(|map| path.ends_with(map));
    match value {
        Value::String(_) => drop(found.insert(path.to_owned())),
        Value::Array(items) => items
            .iter()
            .for_each(|item| given(item, &format!("{path}[]"), found)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            let below = if is_map {
                format!("{path}{{}}")
            } else {
                format!("{path}.{name}")
            };
            given(field, &below, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// By a rule, or by what the schema itself says: the validator looks at rules alone, the API server at both.
fn is_refused(schema: &Value, object: &Value) -> bool {
    !failures(schema, object).is_empty() || is_outside(schema, object)
}

/// Whether some text is outside its enumeration or pattern.
fn is_outside(schema: &Value, value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let choices = schema["enum"].as_array();
            let pattern = schema["pattern"].as_str();
            choices.is_some_and(|choices| !choices.contains(value))
                || pattern
                    .is_some_and(|pattern| !regex::Regex::new(pattern).unwrap().is_match(text))
        }
        Value::Array(items) => items.iter().any(|item| is_outside(&schema["items"], item)),
        Value::Object(fields) => fields.iter().any(|(name, field)| {
            let own = schema["properties"].get(name);
            is_outside(own.unwrap_or(&schema["additionalProperties"]), field)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[test]
fn every_text_there_is_is_tried() {
    let (mut all, mut tried) = (BTreeSet::new(), BTreeSet::new());
    let schema = schema("GpuRdmaCluster");
    walk("", &schema["properties"]["spec"], &mut |path, node| {
        let is_text = node["type"] == "string" || node["x-kubernetes-int-or-string"] == true;
        if is_text && !node["enum"].is_array() {
            all.insert(path.to_owned());
        }
    });
    for spec in texts::specs() {
        given(&spec, "", &mut tried);
    }
    assert!(all.len() > 20, "{all:?}");
    let missing: Vec<_> = all.difference(&tried).collect();
    assert!(missing.is_empty(), "not tried: {missing:?}");
}

#[test]
fn the_rules_refuse_what_breaks_out_of_any_text_of_a_cluster() {
    let schema = schema("GpuRdmaCluster");
    for spec in texts::specs() {
        assert!(!is_refused(&schema, &object("GpuRdmaCluster", &spec)));
        for (place, spec) in texts::hostile(&spec) {
            let refused = is_refused(&schema, &object("GpuRdmaCluster", &spec));
            assert!(refused, "{place} is taken: {spec}");
        }
    }
}

#[test]
fn the_rules_refuse_what_breaks_out_of_any_text_of_a_node_s_configuration() {
    let schema = schema("GpuRdmaNode");
    for spec in texts::specs() {
        let config = texts::config(&spec);
        let node = |config: &Value| object("GpuRdmaNode", &json!({ "config": config }));
        assert!(!is_refused(&schema, &node(&config)));
        for (place, config) in texts::hostile(&config) {
            assert!(
                is_refused(&schema, &node(&config)),
                "{place} is taken: {config}"
            );
        }
    }
}
