//! The agent's own CDI specification, kind `gpurdma.dev/pair` (CDI specification 0.6.0). Pure: types and building;
//! [`crate::apply`] writes the file. One device per pair, GPU or NIC; each has a name that the node file gives the plugin.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Kind of our devices.
pub const KIND: &str = "gpurdma.dev/pair";
/// File name below the CDI directory.
pub const FILE: &str = "gpurdma.dev-pair.json";
/// Where the description of each pair is, on the host and in the container.
pub const PAIR_DIR: &str = "/run/gpurdma/pairs";

/// A CDI specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Version of the specification.
    pub cdi_version: String,
    /// `vendor/class`.
    pub kind: String,
    /// Devices in the order of their names.
    pub devices: Vec<Device>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its name within the kind.
    pub name: String,
    /// What the runtime does to the container.
    pub container_edits: Edits,
}

/// What the runtime does to a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Edits {
    /// Device nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_nodes: Vec<Node>,
    /// Bind mounts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
}

/// A device node; the runtime takes type and numbers from the host's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Path in the container.
    pub path: String,
    /// Path on the host.
    pub host_path: String,
    /// `r`, `w`, `m`.
    pub permissions: String,
}

/// A bind mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// Path on the host.
    pub host_path: String,
    /// Path in the container.
    pub container_path: String,
    /// Mount options.
    pub options: Vec<String>,
}

/// A device name that CDI allows: letters, digits and `_ - . :`, letter or digit at both ends.
#[must_use]
pub fn name(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let replaced: String = id
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    let trimmed = replaced.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if trimmed.is_empty() {
        "device".to_owned()
    } else {
        trimmed.to_owned()
    }
}

/// The name by which the plugin asks for a device.
#[must_use]
pub fn qualified(id: &str) -> String {
    format!("{KIND}={}", name(id))
}

/// Path of the description of a pair.
#[must_use]
pub fn pair_file(id: &str) -> String {
    format!("{PAIR_DIR}/{}.json", name(id))
}

/// Path of the host's NCCL topology file: one for all pairs, as NCCL takes out of it what a container does not have.
#[must_use]
pub fn topology_file() -> String {
    format!("{PAIR_DIR}/nccl-topology.xml")
}

/// A device with these nodes and files.
#[must_use]
pub fn device(
    id: &str,
    nodes: impl IntoIterator<Item = String>,
    files: impl IntoIterator<Item = String>,
) -> Device {
    let nodes: BTreeSet<String> = nodes.into_iter().collect();
    let edits = Edits {
        device_nodes: nodes.into_iter().map(node).collect(),
        mounts: files.into_iter().map(read_only).collect(),
    };
    Device {
        name: name(id),
        container_edits: edits,
    }
}

fn node(path: String) -> Node {
    Node {
        host_path: path.clone(),
        path,
        permissions: "rw".to_owned(),
    }
}

fn read_only(path: String) -> Mount {
    let options = ["ro", "nosuid", "nodev", "noexec", "bind"]
        .map(str::to_owned)
        .to_vec();
    Mount {
        host_path: path.clone(),
        container_path: path,
        options,
    }
}

/// The specification with the wanted devices, and those of `before` that a container may still need when it restarts.
/// `None` where there is no device: CDI allows no empty specification.
#[must_use]
pub fn spec(
    wanted: Vec<Device>,
    before: Option<&Spec>,
    in_use: impl Fn(&str) -> bool,
) -> Option<Spec> {
    let names: BTreeSet<String> = wanted.iter().map(|device| device.name.clone()).collect();
    let old = before.into_iter().flat_map(|spec| &spec.devices);
    let kept = old
        .filter(|device| !names.contains(&device.name) && in_use(&device.name))
        .cloned();
    let mut devices: Vec<Device> = wanted.into_iter().chain(kept).collect();
    devices.sort_by(|a, b| a.name.cmp(&b.name));
    devices.dedup_by(|a, b| a.name == b.name);
    let some = !devices.is_empty();
    some.then(|| Spec {
        cdi_version: "0.6.0".to_owned(),
        kind: KIND.to_owned(),
        devices,
    })
}

#[cfg(test)]
mod tests;
