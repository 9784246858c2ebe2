//! The CRDs' rules on a real API server: the same cases that `crds` runs without one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that fails should say where"
)]

#[path = "support/client.rs"]
mod client;

use std::path::PathBuf;

use client::with_client;
use e2e::cluster::Cluster;
use e2e::paths;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    expect: String,
    object_name: Option<String>,
    spec: Value,
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(paths::repository().join(folder)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn cases() -> Vec<Case> {
    let read = |path: PathBuf| serde_yaml::from_str(&std::fs::read_to_string(&path).unwrap());
    files("crds/tests/cel")
        .into_iter()
        .map(|path| read(path).unwrap())
        .collect()
}

async fn install(client: &Client) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds::crds() {
        let name = crd.name_any();
        api.patch(
            &name,
            &PatchParams::apply("test").force(),
            &Patch::Apply(&crd),
        )
        .await?;
        await_condition(api.clone(), &name, conditions::is_crd_established()).await?;
    }
    Ok(())
}

/// What the server says to an object: accepted, or its message.
async fn answer(client: &Client, object: &Value) -> String {
    let resource = ApiResource::erase::<crds::GpuRdmaCluster>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let object = serde_json::from_value(object.clone()).unwrap();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match api.create(&dry, &object).await {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn object(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "gpurdma.dev/v1alpha1", "kind": "GpuRdmaCluster", "metadata": {"name": name}, "spec": spec})
}

#[test]
fn the_server_accepts_and_rejects_what_the_rules_say() {
    let cluster = Cluster::control_plane("api").unwrap();
    let cases = cases();
    assert!(cases.len() > 50, "only {} cases", cases.len());
    let wrong: Vec<_> = with_client(&cluster, async |client| {
        install(&client).await?;
        let mut wrong = Vec::new();
        for case in &cases {
            let name = case.object_name.as_deref().unwrap_or("case");
            let answer = answer(&client, &object(name, &case.spec)).await;
            if !answer.contains(&case.expect) {
                wrong.push(format!(
                    "{}: expected `{}`, the server says: {answer}",
                    case.name, case.expect
                ));
            }
        }
        for path in files("crds/examples") {
            let example = serde_yaml::from_str(&std::fs::read_to_string(&path)?)?;
            let answer = answer(&client, &example).await;
            if answer != "accepted" {
                wrong.push(format!("{}: {answer}", path.display()));
            }
        }
        Ok(wrong)
    })
    .unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
