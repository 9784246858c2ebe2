//! Is the API server what this operator was built for? Its version, and whether it keeps every field of ours: a CRD of
//! an older release prunes new ones in silence.

use anyhow::{Context, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, ResourceExt};
use serde_json::Value;

/// Oldest minor version of Kubernetes 1: bound tokens carry the node's name since then.
const OLDEST: u32 = 32;
const OPENAPI: &str = "/openapi/v3/apis/gpurdma.dev/v1alpha1";

/// Refuses an API server that is too old.
pub async fn server_version(client: &Client) -> anyhow::Result<()> {
    let info = client
        .apiserver_version()
        .await
        .context("cannot read the version of the API server")?;
    if !is_new_enough(&info.major, &info.minor) {
        bail!(
            "Kubernetes is {}.{}, at least 1.{OLDEST} is needed: upgrade the control plane first",
            info.major,
            info.minor
        );
    }
    Ok(())
}

/// Refuses an API server that is too old or whose CRDs would prune our fields.
pub async fn served(client: &Client) -> anyhow::Result<()> {
    server_version(client).await?;
    let request = http::Request::get(OPENAPI)
        .body(Vec::new())
        .context("cannot build a request")?;
    let document: Value = client.request(request).await.context(
        "cannot read the schema of gpurdma.dev/v1alpha1: are the CRDs installed (operator install, the chart's hook)?",
    )?;
    for crd in crds::crds() {
        let missing = missing_in_openapi(&document, &crd);
        if !missing.is_empty() {
            let name = crd.name_any();
            bail!(
                "CRD {name} is older than this operator and prunes {}: upgrade the chart",
                missing.join(", ")
            );
        }
    }
    Ok(())
}

/// Minor versions carry suffixes such as `32+` on some platforms.
fn is_new_enough(major: &str, minor: &str) -> bool {
    let number = |text: &str| {
        text.trim_end_matches(|sign: char| !sign.is_ascii_digit())
            .parse::<u32>()
            .unwrap_or(0)
    };
    number(major) > 1 || (number(major) == 1 && number(minor) >= OLDEST)
}

/// Fields of `wanted` that `served` does not have, sorted.
#[must_use]
pub fn missing_in_crd(
    served: &CustomResourceDefinition,
    wanted: &CustomResourceDefinition,
) -> Vec<String> {
    missing(&schema(served), &schema(wanted))
}

fn missing_in_openapi(document: &Value, wanted: &CustomResourceDefinition) -> Vec<String> {
    let kind = Value::String(wanted.spec.names.kind.clone());
    let schemas = document
        .pointer("/components/schemas")
        .and_then(Value::as_object);
    let is_kind =
        |schema: &&Value| schema.pointer("/x-kubernetes-group-version-kind/0/kind") == Some(&kind);
    let served = schemas
        .and_then(|schemas| schemas.values().find(is_kind))
        .cloned()
        .unwrap_or_default();
    missing(&served, &schema(wanted))
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    let version = crd.spec.versions.iter().find(|version| version.served);
    let schema = version
        .and_then(|version| version.schema.as_ref())
        .and_then(|schema| schema.open_api_v3_schema.as_ref());
    serde_json::to_value(schema).unwrap_or_default()
}

fn missing(served: &Value, wanted: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    for part in ["spec", "status"] {
        let at = format!("/properties/{part}");
        collect(served.pointer(&at), wanted.pointer(&at), part, &mut fields);
    }
    fields.sort_unstable();
    fields
}

/// A served schema that keeps unknown fields keeps ours.
fn collect(served: Option<&Value>, wanted: Option<&Value>, path: &str, fields: &mut Vec<String>) {
    let Some(wanted) = wanted else { return };
    let Some(served) = served else {
        fields.push(path.to_owned());
        return;
    };
    if served.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return;
    }
    for (name, field) in wanted
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let found = served
            .get("properties")
            .and_then(|properties| properties.get(name));
        collect(found, Some(field), &format!("{path}.{name}"), fields);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(field) = wanted.get(inner).filter(|field| field.is_object()) {
            collect(served.get(inner), Some(field), &format!("{path}[]"), fields);
        }
    }
}

#[cfg(test)]
mod tests;
