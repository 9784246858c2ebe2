//! Parts of pods that more than one component needs. Pure.

use std::path::Path;

use k8s_openapi::api::apps::v1::{DaemonSetUpdateStrategy, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::{
    EnvVar, EnvVarSource, HostPathVolumeSource, LocalObjectReference, ObjectFieldSelector,
    Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A host path and where the container sees it.
pub(super) struct HostMount<'a> {
    /// Name of the volume.
    pub(super) name: &'a str,
    /// Path on the host.
    pub(super) host: &'a str,
    /// Path in the container.
    pub(super) container: &'a str,
    /// `hostPath.type`; empty checks nothing.
    pub(super) kind: &'a str,
    /// Whether the container may write.
    pub(super) writable: bool,
    /// Mount propagation.
    pub(super) propagation: Option<&'a str>,
}

/// Volumes and mounts of the same list, so that they cannot disagree.
pub(super) fn mounted(list: &[HostMount<'_>]) -> (Vec<Volume>, Vec<VolumeMount>) {
    list.iter()
        .map(|mount| (volume(mount), volume_mount(mount)))
        .unzip()
}

fn volume(mount: &HostMount<'_>) -> Volume {
    let host_path = HostPathVolumeSource {
        path: mount.host.to_owned(),
        type_: (!mount.kind.is_empty()).then(|| mount.kind.to_owned()),
    };
    Volume {
        name: mount.name.to_owned(),
        host_path: Some(host_path),
        ..Volume::default()
    }
}

fn volume_mount(mount: &HostMount<'_>) -> VolumeMount {
    VolumeMount {
        name: mount.name.to_owned(),
        mount_path: mount.container.to_owned(),
        read_only: (!mount.writable).then_some(true),
        mount_propagation: mount.propagation.map(ToOwned::to_owned),
        ..VolumeMount::default()
    }
}

/// Runs wherever it is sent, whatever the taints (O18: `Exists` without a key matches every spelling).
pub(super) fn tolerate_everything() -> Vec<Toleration> {
    vec![Toleration {
        operator: Some("Exists".to_owned()),
        ..Toleration::default()
    }]
}

/// References to pull secrets, sorted, each once; none where there are none.
pub(super) fn pull_secrets<'a>(
    names: impl IntoIterator<Item = &'a String>,
) -> Option<Vec<LocalObjectReference>> {
    let mut names: Vec<_> = names.into_iter().cloned().collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        names
            .into_iter()
            .map(|name| LocalObjectReference { name })
            .collect()
    })
}

/// A variable with a value.
pub(super) fn variable(name: &str, value: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        value_from: None,
    }
}

/// `NODE_NAME`, from the pod.
pub(super) fn node_name() -> EnvVar {
    of_pod("NODE_NAME", "spec.nodeName")
}

/// `NODE_IPS`: all addresses of the Node, separated by commas. The agent touches no interface that has one.
pub(super) fn node_ips() -> EnvVar {
    of_pod("NODE_IPS", "status.hostIPs")
}

fn of_pod(name: &str, path: &str) -> EnvVar {
    let field = ObjectFieldSelector {
        field_path: path.to_owned(),
        api_version: None,
    };
    let source = EnvVarSource {
        field_ref: Some(field),
        ..EnvVarSource::default()
    };
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(source),
    }
}

/// A tenth of the nodes at a time: what restarts harms no running job.
pub(super) fn rolling() -> DaemonSetUpdateStrategy {
    let tenth = IntOrString::String("10%".to_owned());
    DaemonSetUpdateStrategy {
        type_: Some("RollingUpdate".to_owned()),
        rolling_update: Some(RollingUpdateDaemonSet {
            max_unavailable: Some(tenth),
            max_surge: None,
        }),
    }
}

/// A path below a directory of the host.
pub(super) fn below(directory: &str, name: &str) -> String {
    Path::new(directory)
        .join(name)
        .to_string_lossy()
        .into_owned()
}
