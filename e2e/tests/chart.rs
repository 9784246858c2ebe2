//! The chart renders, and every object is what its kind says.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that fails should say where"
)]

use std::path::PathBuf;

use e2e::{cmd, paths, tools};
use k8s_openapi::api::{apps::v1, batch, core, policy, rbac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn chart() -> PathBuf {
    paths::repository().join("charts/gpu-rdma-operator")
}

fn helm(arguments: &[&str]) -> anyhow::Result<String> {
    cmd::output(
        cmd::command("helm", arguments)
            .arg(chart())
            .env("PATH", tools::search_path()?),
    )
}

fn render(more: &[&str]) -> Vec<Value> {
    let fixed = ["template", "gpu-rdma", "--namespace", "gpu-rdma"];
    let text = helm(&fixed.iter().chain(more).copied().collect::<Vec<_>>()).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text);
    documents
        .map(|document| <Value as serde::Deserialize>::deserialize(document).unwrap())
        .filter(|value| !value.is_null())
        .collect()
}

/// Reads an object as its type and writes it again: a field that the type does not know is lost, and found.
fn round_trip<T: DeserializeOwned + Serialize>(object: &Value) -> Value {
    let typed: T =
        serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"));
    serde_json::to_value(typed).unwrap()
}

fn typed(object: &Value) -> Value {
    match object["kind"].as_str().unwrap() {
        "Deployment" => round_trip::<v1::Deployment>(object),
        "Job" => round_trip::<batch::v1::Job>(object),
        "ConfigMap" => round_trip::<core::v1::ConfigMap>(object),
        "Service" => round_trip::<core::v1::Service>(object),
        "ServiceAccount" => round_trip::<core::v1::ServiceAccount>(object),
        "ClusterRole" => round_trip::<rbac::v1::ClusterRole>(object),
        "ClusterRoleBinding" => round_trip::<rbac::v1::ClusterRoleBinding>(object),
        "Role" => round_trip::<rbac::v1::Role>(object),
        "RoleBinding" => round_trip::<rbac::v1::RoleBinding>(object),
        "PodDisruptionBudget" => round_trip::<policy::v1::PodDisruptionBudget>(object),
        other => panic!("the chart makes a {other}: add it to this test"),
    }
}

/// Whether everything in the chart's object is in the typed one; empty values may be dropped.
fn kept(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(key, value)| match after.get(key) {
                Some(other) => kept(value, other),
                None => is_empty(value),
            })
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(a, b)| kept(a, b))
        }
        (before, after) => before == after,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[test]
fn every_object_survives_its_type() {
    for values in [&[][..], &["--set", "operator.replicas=2"]] {
        let objects = render(values);
        assert!(objects.len() > 10, "only {} objects", objects.len());
        for object in &objects {
            let after = typed(object);
            assert!(kept(object, &after), "{object:#}\nreads as\n{after:#}");
        }
    }
}

#[test]
fn helm_lint_is_clean() {
    let text = helm(&["lint", "--strict"]).unwrap();
    assert!(text.contains("0 chart(s) failed"), "{text}");
}

#[test]
fn no_component_may_read_secrets_and_no_wildcards() {
    for role in render(&[])
        .iter()
        .filter(|object| matches!(object["kind"].as_str(), Some("Role" | "ClusterRole")))
    {
        for rule in role["rules"].as_array().unwrap() {
            let text = rule.to_string();
            assert!(
                !text.contains("secrets") && !text.contains("\"*\""),
                "{}: {text}",
                role["metadata"]["name"]
            );
        }
    }
}

#[test]
fn a_wrong_value_is_refused_by_name() {
    let error = format!(
        "{:#}",
        helm(&["template", "x", "--set", "agent.logLevle=debug"]).unwrap_err()
    );
    assert!(error.contains("logLevle"), "{error}");
}
