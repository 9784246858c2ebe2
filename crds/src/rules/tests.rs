//! Runs the cases in `tests/cel` and the examples through the rules as an API server would; the end-to-end crate
//! sends the same files to a real one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kube::core::cel::{ErrorKind, ValidationError, Validator};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::GpuRdmaCluster;
use crate::crds;

mod hostile;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    expect: String,
    #[serde(default = "default_name")]
    object_name: String,
    spec: Value,
}

fn default_name() -> String {
    "case".to_owned()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn cases() -> Vec<Case> {
    let read = |file: &PathBuf| {
        let case: Case = serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(file.file_stem().unwrap().to_str(), Some(case.name.as_str()));
        case
    };
    files("tests/cel").iter().map(read).collect()
}

fn object(case: &Case) -> Value {
    json!({
        "apiVersion": "gpurdma.dev/v1alpha1",
        "kind": "GpuRdmaCluster",
        "metadata": { "name": case.object_name },
        "spec": case.spec,
    })
}

fn schema(kind: &str) -> Value {
    let crd = crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .unwrap();
    serde_json::to_value(crd)
        .unwrap()
        .pointer("/spec/versions/0/schema/openAPIV3Schema")
        .unwrap()
        .clone()
}

fn failures(schema: &Value, object: &Value) -> Vec<ValidationError> {
    Validator::new()
        .validate(schema, object, None)
        .map_or_else(kube::core::cel::ValidationErrors::into_vec, |()| Vec::new())
}

/// Every rule in a schema.
fn rules(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            let own = map
                .get("x-kubernetes-validations")
                .and_then(Value::as_array);
            found.extend(
                own.into_iter()
                    .flatten()
                    .map(|rule| rule["rule"].as_str().unwrap().to_owned()),
            );
            map.values().for_each(|value| rules(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| rules(value, found)),
        _ => {}
    }
}

#[test]
fn each_case_is_accepted_or_refused_with_its_message() {
    let schema = schema("GpuRdmaCluster");
    for case in cases() {
        let failures = failures(&schema, &object(&case));
        assert!(
            failures
                .iter()
                .all(|failure| failure.kind == ErrorKind::ValidationFailure),
            "{}: {failures:?}",
            case.name
        );
        if case.expect == "accepted" {
            assert!(failures.is_empty(), "{}: {failures:?}", case.name);
        } else {
            let said = failures
                .iter()
                .any(|failure| failure.message.contains(&case.expect));
            assert!(
                said,
                "{}: expected {:?}, got {failures:?}",
                case.name, case.expect
            );
        }
    }
}

#[test]
fn each_rule_is_failed_by_some_case() {
    let schema = schema("GpuRdmaCluster");
    let mut unproven = BTreeSet::new();
    rules(&schema, &mut unproven);
    assert!(unproven.len() > 50, "only {} rules found", unproven.len());
    for case in cases() {
        for failure in failures(&schema, &object(&case)) {
            unproven.remove(&failure.rule);
        }
    }
    assert!(
        unproven.is_empty(),
        "no case fails these rules: {unproven:#?}"
    );
}

#[test]
fn accepted_cases_are_read_by_the_types() {
    for case in cases().iter().filter(|case| case.expect == "accepted") {
        let read: Result<GpuRdmaCluster, _> = serde_json::from_value(object(case));
        assert!(read.is_ok(), "{}: {}", case.name, read.unwrap_err());
    }
}

#[test]
fn the_node_s_configuration_is_held_to_the_same_rules() {
    let (mut cluster, mut node) = (BTreeSet::new(), BTreeSet::new());
    rules(
        &schema("GpuRdmaCluster")["properties"]["spec"]["properties"]["driver"],
        &mut cluster,
    );
    rules(&schema("GpuRdmaNode"), &mut node);
    assert!(!cluster.is_empty() && cluster.is_subset(&node));
}

#[test]
fn every_message_says_what_to_write() {
    fn messages(schema: &Value, found: &mut Vec<String>) {
        if let Some(own) = schema["x-kubernetes-validations"].as_array() {
            found.extend(own.iter().map(|rule| {
                let text = rule
                    .get("message")
                    .or_else(|| rule.get("messageExpression"));
                text.unwrap().as_str().unwrap().to_owned()
            }));
        }
        let children = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(_, child)| child);
        children
            .chain([&schema["items"], &schema["additionalProperties"]])
            .for_each(|child| {
                if child.is_object() {
                    messages(child, found);
                }
            });
    }
    let remedies = [
        "write ",
        "give each",
        "keep one",
        "remove it",
        "lower them",
        " needs ",
        " need ",
        " take none",
    ];
    let mut all = Vec::new();
    messages(&schema("GpuRdmaCluster"), &mut all);
    for message in all {
        assert!(
            remedies.iter().any(|remedy| message.contains(remedy)),
            "no remedy: {message}"
        );
        assert!(
            !message.contains('\n'),
            "the API server refuses a message with a line break: {message}"
        );
    }
}

#[test]
fn examples_are_accepted() {
    let schema = schema("GpuRdmaCluster");
    let names: Vec<_> = files("examples")
        .iter()
        .map(|file| file.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "driver-container.yaml",
            "enforce.yaml",
            "infiniband.yaml",
            "observe.yaml",
            "roce.yaml"
        ]
    );
    for file in files("examples") {
        let value: Value = serde_yaml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(failures(&schema, &value), [], "{}", file.display());
        serde_json::from_value::<GpuRdmaCluster>(value).unwrap();
    }
}
