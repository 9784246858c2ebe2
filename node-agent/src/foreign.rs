//! Other device plugins that advertise our GPUs. Pure; [`crate::decide`] calls it with the kubelet's answer.
//!
//! Two plugins that hand out one GPU give it to two pods. Which ids mean which GPU: the UUID, alone or with a suffix
//! (`GPU-…::3` for time slicing, `GPU-…-0` elsewhere), an index under `nvidia.com/`, and MIG ids, which do not name
//! their GPU and so count for all.

use std::collections::{BTreeMap, BTreeSet};

use crds::node::Finding;

use crate::findings::FindingId;
use crate::podresources::{Holder, KubeletDevices};

/// GPU index → UUID, of the GPUs that have one.
pub type Uuids = BTreeMap<usize, String>;

/// Who else advertises a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The extended resource.
    pub resource: String,
    /// The container that holds the GPU through it.
    pub holder: Option<Holder>,
}

impl Foreign {
    /// Why the GPU is not handed out, and what to do.
    #[must_use]
    pub fn reason(&self) -> String {
        let held = self
            .holder
            .as_ref()
            .map(|h| format!(" and held by {}/{}", h.namespace, h.pod));
        format!(
            "also advertised as {}{}: switch that device plugin off on this node",
            self.resource,
            held.unwrap_or_default()
        )
    }
}

/// UUID → who else advertises it. `own` are resource names that our plugin has or had.
#[must_use]
pub fn foreign(
    kubelet: &KubeletDevices,
    own: &BTreeSet<String>,
    gpus: &Uuids,
) -> BTreeMap<String, Foreign> {
    let mut found: BTreeMap<String, Foreign> = BTreeMap::new();
    for name in kubelet
        .names()
        .into_iter()
        .filter(|name| !own.contains(*name))
    {
        for (id, holder) in ids(kubelet, name) {
            for uuid in meant(name, id, gpus) {
                let foreign = found.entry(uuid.clone()).or_insert_with(|| Foreign {
                    resource: name.to_owned(),
                    holder: None,
                });
                if foreign.resource == name && foreign.holder.is_none() {
                    foreign.holder = holder.cloned();
                }
            }
        }
    }
    found
}

/// One finding for each foreign resource.
#[must_use]
pub fn findings(found: &BTreeMap<String, Foreign>) -> Vec<Finding> {
    let mut by_resource: BTreeMap<&str, Vec<&Foreign>> = BTreeMap::new();
    for foreign in found.values() {
        by_resource
            .entry(&foreign.resource)
            .or_default()
            .push(foreign);
    }
    by_resource
        .into_iter()
        .map(|(resource, all)| finding(resource, &all))
        .collect()
}

fn finding(resource: &str, all: &[&Foreign]) -> Finding {
    let held = all
        .iter()
        .filter(|foreign| foreign.holder.is_some())
        .count();
    let message = format!(
        "another device plugin advertises {} of this node's GPUs as {resource} ({held} held by pods), so they are not handed out here: one GPU would go to two pods. Switch that plugin off on this node (with NVIDIA's gpu-operator: node label nvidia.com/gpu.deploy.device-plugin=false) and wait for its pods to end",
        all.len()
    );
    FindingId::ForeignGpuAdvertiser.about(resource, message)
}

fn ids<'a>(
    kubelet: &'a KubeletDevices,
    name: &str,
) -> impl Iterator<Item = (&'a str, Option<&'a Holder>)> {
    let allocatable = kubelet.allocatable.get(name).into_iter().flatten();
    let held = kubelet.held.get(name).into_iter().flatten();
    allocatable
        .map(|id| (id.as_str(), None))
        .chain(held.map(|(id, holder)| (id.as_str(), Some(holder))))
}

fn meant<'a>(resource: &str, id: &str, gpus: &'a Uuids) -> Vec<&'a String> {
    let named: Vec<&String> = gpus
        .values()
        .filter(|uuid| id.contains(uuid.as_str()))
        .collect();
    if !named.is_empty() || !resource.starts_with("nvidia.com/") {
        return named;
    }
    if let Ok(index) = id.parse::<usize>() {
        return gpus.get(&index).into_iter().collect();
    }
    let mig = resource.starts_with("nvidia.com/mig-") || id.starts_with("MIG-");
    if mig {
        gpus.values().collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
