//! The pod of a process, by the name of its control group, and the pod's name, by the kubelet's log directory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::root::Root;

/// One directory per pod: `<namespace>_<name>_<uid>`; no part holds an underscore.
const LOGS: &str = "/var/log/pods";

/// A pod on this node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Its uid; of a static pod that is a hash.
    pub uid: String,
    /// Namespace, where the kubelet's directory tells.
    pub namespace: Option<String>,
    /// Name, where the kubelet's directory tells.
    pub name: Option<String>,
}

impl Pod {
    pub(super) fn named(uid: String, names: &BTreeMap<String, (String, String)>) -> Self {
        let found = names.get(&uid).cloned();
        let (namespace, name) = found.map_or((None, None), |(a, b)| (Some(a), Some(b)));
        Self {
            uid,
            namespace,
            name,
        }
    }

    /// `namespace/name`, or what is known.
    #[must_use]
    pub fn display(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
            _ => format!("uid {}", self.uid),
        }
    }
}

/// uid → namespace and name.
pub(super) fn names(root: &Root) -> BTreeMap<String, (String, String)> {
    let entry = |name: &String| {
        let mut parts = name.splitn(3, '_');
        let (namespace, pod, uid) = (parts.next()?, parts.next()?, parts.next()?);
        Some((uid.to_owned(), (namespace.to_owned(), pod.to_owned())))
    };
    let directories = root.entries(LOGS).known().cloned().unwrap_or_default();
    directories.iter().filter_map(entry).collect()
}

/// The uid in a control group's path: `…/kubepods-burstable-pod12ab_….slice/…` of systemd's driver, which writes `_` for `-`,
/// or `/kubepods/burstable/pod12ab-…/…` of the kubelet's own.
#[must_use]
pub fn pod_uid(cgroup: &str) -> Option<String> {
    let in_pods = cgroup.lines().find(|line| line.contains("kubepods"))?;
    in_pods.split('/').find_map(|part| {
        let part = part.strip_suffix(".slice").unwrap_or(part);
        let (before, uid) = part.rsplit_once("pod")?;
        let is_pod = before.is_empty() || (before.starts_with("kubepods") && before.ends_with('-'));
        let is_uid = uid.len() >= 32
            && uid
                .bytes()
                .all(|b| b.is_ascii_hexdigit() || b == b'-' || b == b'_');
        (is_pod && is_uid).then(|| uid.replace('_', "-"))
    })
}
