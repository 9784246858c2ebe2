//! The few ways in which the operator writes. Every failure says what was tried on which object.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crds::GpuRdmaNode;
use crds::names::{GPU_PLUGIN_LABEL, GPU_PLUGIN_WAS, MAINTENANCE_TAINT, ROLLOUT_MANAGER};
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::Error;
use crate::takeover::Switch;

/// Field manager of what the operator writes outside the kinds' own managers.
pub const MANAGER: &str = "gpurdma-operator";

/// Turns a client's error into ours.
pub fn failed(
    operation: &'static str,
    object: impl Into<String>,
) -> impl FnOnce(kube::Error) -> Error {
    let object = object.into();
    move |source| Error::Api {
        operation,
        object,
        source: Box::new(source),
    }
}

fn describe<K: Resource<DynamicType = ()>>(name: &str) -> String {
    format!("{} {name}", K::kind(&()))
}

/// Server-side apply. Without `force`, another manager's field is a conflict.
pub async fn apply<K>(api: &Api<K>, object: &K, manager: &str, force: bool) -> Result<K, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let params = PatchParams {
        force,
        ..PatchParams::apply(manager)
    };
    let name = object.name_any();
    api.patch(&name, &params, &Patch::Apply(object))
        .await
        .map_err(failed("apply", describe::<K>(&name)))
}

/// Deletes; what is already gone is fine.
pub async fn delete<K>(api: &Api<K>, name: &str, params: &DeleteParams) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    match api.delete(name, params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(failed("delete", describe::<K>(name))(error)),
    }
}

/// Sets labels of a node; none removes one. A node that is gone needs none.
pub async fn label_node(
    client: &Client,
    node: &str,
    labels: &BTreeMap<&'static str, Option<String>>,
) -> Result<(), Error> {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let result = Api::<Node>::all(client.clone())
        .patch_metadata(node, &params, &patch)
        .await;
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(failed("label", describe::<Node>(node))(error)),
    }
}

/// Asks for the eviction of a pod. A disruption budget that refuses is no failure: the answer is what it said. A pod
/// that is gone is evicted.
///
/// The client must not repeat what the server refuses: it would ask for minutes and count as one try.
pub async fn evict(client: &Client, namespace: &str, name: &str) -> Result<Option<String>, Error> {
    let api = Api::<Pod>::namespaced(client.clone(), namespace);
    match api.evict(name, &EvictParams::default()).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        // 429: a budget would be violated. 500 with this text: several budgets select the pod.
        Err(kube::Error::Api(status))
            if status.code == 429 || status.message.contains("PodDisruptionBudget") =>
        {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let causes: Vec<_> = causes.map(|cause| cause.message.as_str()).collect();
            let why = if causes.is_empty() {
                status.message.clone()
            } else {
                causes.join("; ")
            };
            Ok(Some(format!("{namespace}/{name}: {why}")))
        }
        Err(error) => Err(failed("evict", format!("Pod {namespace}/{name}"))(error)),
    }
}

/// Writes or removes an annotation of a `GpuRdmaNode`. An object that is gone needs none.
pub async fn annotate(
    client: &Client,
    node: &str,
    key: &str,
    value: Option<&str>,
) -> Result<(), Error> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
    let params = PatchParams {
        field_manager: Some(ROLLOUT_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let api = Api::<GpuRdmaNode>::all(client.clone());
    match api.patch_metadata(node, &params, &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(failed("annotate", describe::<GpuRdmaNode>(node))(error)),
    }
}

/// Switches the other device plugin of a node off or on. Label and annotation change together, and only while the label
/// is as it was seen: its owner writes it too.
pub async fn switch_gpu_plugin(client: &Client, switch: &Switch) -> Result<(), Error> {
    let api = Api::<Node>::all(client.clone());
    let name = switch.node.as_str();
    let object = api.get_metadata_opt(name).await;
    let Some(object) = object.map_err(failed("read", describe::<Node>(name)))? else {
        return Ok(());
    };
    let changed = || Error::NodeChanged {
        node: name.to_owned(),
    };
    if object.labels().get(GPU_PLUGIN_LABEL) != switch.seen.as_ref() {
        return Err(changed());
    }
    let patch = json!({"metadata": {
        "resourceVersion": object.resource_version(),
        "labels": {GPU_PLUGIN_LABEL: switch.label},
        "annotations": {GPU_PLUGIN_WAS: switch.was},
    }});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api
        .patch_metadata(name, &params, &Patch::Merge(patch))
        .await
    {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Err(changed()),
        Err(error) => Err(failed("label", describe::<Node>(name))(error)),
    }
}

/// Adds or removes the maintenance taint. Taints are a list that others write too, so the patch holds only for the
/// version that was read.
pub async fn set_taint(client: &Client, node: &str, wanted: bool) -> Result<(), Error> {
    let api = Api::<Node>::all(client.clone());
    let Some(object) = api
        .get_opt(node)
        .await
        .map_err(failed("read", describe::<Node>(node)))?
    else {
        return Ok(());
    };
    let Some(patch) = taint_patch(&object, wanted) else {
        return Ok(());
    };
    let patch = serde_json::from_value(patch).map_err(|source| Error::Render {
        object: describe::<Node>(node),
        source,
    })?;
    match api
        .patch(node, &PatchParams::default(), &Patch::<()>::Json(patch))
        .await
    {
        Ok(_) => Ok(()),
        // A failed `test` operation is 422 on API servers, a lost race 409.
        Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => {
            Err(Error::NodeChanged {
                node: node.to_owned(),
            })
        }
        Err(error) => Err(failed("taint", describe::<Node>(node))(error)),
    }
}

/// The JSON patch that adds or removes our taint; none where the node is as wanted.
#[must_use]
pub fn taint_patch(node: &Node, wanted: bool) -> Option<Value> {
    let mut taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let present = taints.iter().any(|taint| taint.key == MAINTENANCE_TAINT);
    if present == wanted {
        return None;
    }
    taints.retain(|taint| taint.key != MAINTENANCE_TAINT);
    if wanted {
        let effect = "NoSchedule".to_owned();
        taints.push(Taint {
            key: MAINTENANCE_TAINT.to_owned(),
            effect,
            ..Taint::default()
        });
    }
    Some(json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": node.resource_version()},
        {"op": "add", "path": "/spec/taints", "value": taints},
    ]))
}

#[cfg(test)]
mod tests;
