//! `operator install`: the CRDs and the admission policy, before anything that needs them. Every step may be repeated.

use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};

use crate::kube_io::{self, MANAGER};

pub mod check;
pub mod policy;

/// How long an API server may take to serve a new kind.
const PATIENCE: Duration = Duration::from_mins(1);

/// Applies the CRDs, waits until they are served, and applies the admission policy.
pub async fn install(namespace: &str) -> anyhow::Result<()> {
    let client = Client::try_default()
        .await
        .context("cannot find the Kubernetes API")?;
    check::server_version(&client).await?;
    for crd in crds::crds() {
        define(&client, &crd).await?;
    }
    let policies = Api::<ValidatingAdmissionPolicy>::all(client.clone());
    kube_io::apply(&policies, &policy::policy(namespace), MANAGER, true).await?;
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(client.clone());
    kube_io::apply(&bindings, &policy::binding(), MANAGER, true).await?;
    tracing::info!("installed");
    Ok(())
}

async fn define(client: &Client, crd: &CustomResourceDefinition) -> anyhow::Result<()> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let name = crd.name_any();
    let applied = kube_io::apply(&api, crd, MANAGER, true).await?;
    let missing = check::missing_in_crd(&applied, crd);
    if !missing.is_empty() {
        bail!(
            "CRD {name} would prune these fields, another manager owns its schema: {}",
            missing.join(", ")
        );
    }
    let established = await_condition(api, &name, conditions::is_crd_established());
    tokio::time::timeout(PATIENCE, established)
        .await
        .with_context(|| {
            format!(
                "CRD {name} is not served after {} s: see its conditions",
                PATIENCE.as_secs()
            )
        })?
        .with_context(|| format!("cannot watch CRD {name}"))?;
    tracing::info!(name, "CRD is served");
    Ok(())
}

#[cfg(test)]
mod tests;
