//! What scenarios do with a cluster: install the chart, apply a `GpuRdmaCluster`, run pods and look inside them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::{paths, product, progress};

/// Namespace and name of the Helm release.
pub const NAMESPACE: &str = "gpu-rdma";
/// The Helm release.
pub const RELEASE: &str = "gpu-rdma";
/// The resource that pods ask for.
pub const RESOURCE: &str = "rdma/gpudirect";

/// Installs the shipped chart with the local images, or upgrades to it.
pub fn install_chart(cluster: &Cluster, more: &[&str]) -> Result<()> {
    let chart = paths::repository()
        .canonicalize()?
        .join("charts/gpu-rdma-operator")
        .display()
        .to_string();
    let tag = format!("image.tag={}", product::TAG);
    let fixed = [
        "upgrade",
        "--install",
        RELEASE,
        &chart,
        "--namespace",
        NAMESPACE,
        "--create-namespace",
        "--wait",
        "--timeout",
        "180s",
    ];
    let images = [
        "--set",
        "image.registry=localhost",
        "--set",
        &tag,
        "--set",
        "image.pullPolicy=Never",
    ];
    cluster
        .helm(fixed.into_iter().chain(images).chain(more.iter().copied()))
        .map(drop)
}

/// Uninstalls the release and waits for its hook.
pub fn uninstall_chart(cluster: &Cluster) -> Result<()> {
    cluster
        .helm([
            "uninstall",
            RELEASE,
            "--namespace",
            NAMESPACE,
            "--wait",
            "--timeout",
            "180s",
        ])
        .map(drop)
}

/// `kubectl apply` of one object.
pub fn apply(cluster: &Cluster, object: &Value) -> Result<String> {
    let file = cluster.work().join("apply.json");
    std::fs::write(&file, object.to_string())
        .with_context(|| format!("write {}", file.display()))?;
    cluster.kubectl(["apply", "-f", &file.display().to_string()])
}

/// A `GpuRdmaCluster` with a specification.
#[must_use]
pub fn gpu_rdma_cluster(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "gpurdma.dev/v1alpha1", "kind": "GpuRdmaCluster", "metadata": {"name": name}, "spec": spec})
}

/// A pod on a node that asks for pairs and then stays.
#[must_use]
pub fn pod(name: &str, node: Option<&str>, pairs: usize) -> Value {
    let limits = if pairs == 0 {
        json!({})
    } else {
        json!({RESOURCE: pairs.to_string()})
    };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "scenario"}},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
            "containers": [{
                "name": "main", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                "command": ["/bin/sleep", "1000000"], "resources": {"limits": limits},
            }],
        },
    });
    if let Some(node) = node {
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    }
    pod
}

/// One value of an object, by a `JSONPath`; empty where there is none.
pub fn value(cluster: &Cluster, object: &[&str], path: &str) -> Result<String> {
    let path = format!("jsonpath={path}");
    cluster.kubectl(
        ["get"]
            .into_iter()
            .chain(object.iter().copied())
            .chain(["-o", &path]),
    )
}

/// Waits until a value is as wanted; the error shows the last one.
pub fn wait_value(
    cluster: &Cluster,
    object: &[&str],
    path: &str,
    seconds: u64,
    wanted: impl Fn(&str) -> bool,
) -> Result<String> {
    let mut last = String::new();
    let found = progress::wait_for(
        &format!("{} of {}", path, object.join(" ")),
        seconds,
        || {
            last = value(cluster, object, path).unwrap_or_else(|error| format!("{error:#}"));
            wanted(&last).then(|| last.clone())
        },
    );
    found.with_context(|| format!("the last value was `{last}`"))
}

/// Waits until a node has that many allocatable devices of a resource.
pub fn wait_allocatable(cluster: &Cluster, node: &str, resource: &str, count: usize) -> Result<()> {
    let path = format!("{{.status.allocatable.{}}}", resource.replace('.', "\\."));
    let wanted = count.to_string();
    wait_value(cluster, &["node", node], &path, 120, |seen| {
        seen == wanted || (count == 0 && seen.is_empty())
    })
    .map(drop)
}

/// Starts a pod and waits until it runs.
pub fn run_pod(cluster: &Cluster, pod: &Value) -> Result<()> {
    let name = pod["metadata"]["name"]
        .as_str()
        .context("a pod has a name")?;
    apply(cluster, pod)?;
    wait_value(cluster, &["pod", name], "{.status.phase}", 90, |phase| {
        phase == "Running"
    })
    .map(drop)
}

/// Deletes pods and waits until they are gone.
pub fn delete_pods(cluster: &Cluster, names: &[&str]) -> Result<()> {
    let fixed = [
        "delete",
        "pod",
        "--ignore-not-found",
        "--wait=true",
        "--timeout=60s",
        "--grace-period=0",
        "--force",
    ];
    cluster
        .kubectl(fixed.into_iter().chain(names.iter().copied()))
        .map(drop)
}

/// Runs a program in a pod's container.
pub fn in_pod(cluster: &Cluster, pod: &str, command: &[&str]) -> Result<String> {
    cluster.kubectl(
        ["exec", pod, "--"]
            .into_iter()
            .chain(command.iter().copied()),
    )
}

/// What a container got, as it sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Character devices below `/dev`, without those that every container has.
    pub devices: Vec<String>,
    /// Pairs by their id, from the description files.
    pub pairs: BTreeMap<String, Pair>,
}

/// One pair, as its description file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// `GPU0`.
    pub gpu: String,
    /// RDMA device names.
    pub nics: Vec<String>,
    /// Distance to the first of them.
    pub distance: String,
}

/// Looks into a container.
pub fn granted(cluster: &Cluster, pod: &str) -> Result<Granted> {
    let listing = in_pod(cluster, pod, &["find", "/dev", "-type", "c"])?;
    let ours = |path: &&str| path.starts_with("/dev/nvidia") || path.starts_with("/dev/infiniband");
    let mut devices: Vec<_> = listing.lines().filter(ours).map(str::to_owned).collect();
    devices.sort();
    let files = in_pod(
        cluster,
        pod,
        &["find", "/run/gpurdma/pairs", "-name", "*.json"],
    )
    .unwrap_or_default();
    let mut pairs = BTreeMap::new();
    for file in files.lines() {
        let (id, pair) = pair(&in_pod(cluster, pod, &["cat", file])?)
            .with_context(|| format!("understand {file}"))?;
        pairs.insert(id, pair);
    }
    Ok(Granted { devices, pairs })
}

fn pair(text: &str) -> Result<(String, Pair)> {
    let file: Value = serde_json::from_str(text)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nics = file["nics"].as_array().into_iter().flatten();
    let pair = Pair {
        gpu: text(&file["gpu"]["name"]),
        nics: nics.map(|nic| text(&nic["rdma"])).collect(),
        distance: text(&file["nics"][0]["distance"]),
    };
    Ok((text(&file["id"]), pair))
}
