//! Other device plugins that advertise our GPUs. Pure; [`crate::decide`] calls it with the kubelet's answer.
//!
//! Two plugins that hand out one GPU give it to two pods. Which ids mean which GPU: the UUID, alone or with a suffix
//! (`GPU-…::3` for time slicing, `GPU-…-0` elsewhere); under `nvidia.com/` also an index and `nvidia<minor>`. Any other
//! id there, such as MIG's, does not name its GPU and so counts for all.

use std::collections::{BTreeMap, BTreeSet};

use crds::node::{Finding, OtherAdvertiser};
use topology::machine::Machine;
use topology::pci::PciAddress;

use crate::evidence::Evidence;
use crate::findings::FindingId;
use crate::podresources::{Holder, KubeletDevices};

mod memory;

pub use memory::ForeignMemory;

/// A GPU that has a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverGpu {
    /// Its UUID.
    pub uuid: String,
    /// Minor number of its device node.
    pub minor: Option<u32>,
}

/// The GPUs that a driver has, in the order of their PCI addresses: so NVIDIA's libraries count them.
#[must_use]
pub fn driver_gpus(machine: &Machine) -> Vec<DriverGpu> {
    let gpu = |gpu: &topology::machine::Gpu| {
        let (uuid, minor) = (gpu.uuid.known()?.clone(), gpu.minor.known().copied());
        Some(DriverGpu { uuid, minor })
    };
    machine.gpus.iter().filter_map(gpu).collect()
}

/// Who else advertises a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The extended resource.
    pub resource: String,
    /// The container that holds the GPU through it.
    pub holder: Option<Holder>,
    /// Whether the kubelet shows it now; else it was seen before, and is not forgotten yet.
    pub shown: bool,
}

/// UUID → every resource of others that names the GPU → the container that holds it.
pub type Seen = BTreeMap<String, BTreeMap<String, Option<Holder>>>;

impl Foreign {
    /// Why the GPU is not handed out, and what to do.
    #[must_use]
    pub fn reason(&self) -> String {
        if !self.shown {
            return format!(
                "was advertised as {}: waits until the kubelet has not shown that for six minutes",
                self.resource
            );
        }
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

/// What others advertise. `own` are resource names that our plugin has or had.
#[must_use]
pub fn seen(kubelet: &KubeletDevices, own: &BTreeSet<String>, gpus: &[DriverGpu]) -> Seen {
    let mut seen = Seen::new();
    let names = kubelet.names().into_iter();
    for name in names.filter(|name| !own.contains(*name)) {
        for (id, holder) in ids(kubelet, name) {
            for uuid in meant(name, id, gpus) {
                let resources = seen.entry(uuid.clone()).or_default();
                let held = resources.entry(name.to_owned()).or_default();
                if held.is_none() {
                    *held = holder.cloned();
                }
            }
        }
    }
    seen
}

/// Who advertises GPUs under a name of ours. `offered` are the ids that we may have on offer; `None` where nobody knows.
///
/// The kubelet does not tell whose a device is. What it offers and we do not is another's; and a socket where NVIDIA's
/// plugin listens is one of which it may offer all GPUs.
#[must_use]
pub fn namesakes(
    evidence: &Evidence,
    own: &BTreeSet<String>,
    offered: Option<&BTreeSet<String>>,
    gpus: &[DriverGpu],
) -> Seen {
    let mut seen = Seen::new();
    for resource in own {
        let shown = evidence
            .shown()
            .and_then(|kubelet| kubelet.allocatable.get(resource));
        let strange = shown
            .into_iter()
            .flatten()
            .filter(|id| offered.is_some_and(|ours| !ours.contains(*id)));
        let mut named: BTreeSet<&String> =
            strange.flat_map(|id| meant(resource, id, gpus)).collect();
        if evidence.plugins().contains(resource) {
            named.extend(gpus.iter().map(|gpu| &gpu.uuid));
        }
        for uuid in named {
            seen.entry(uuid.clone())
                .or_default()
                .insert(resource.clone(), None);
        }
    }
    seen
}

/// The resource that NVIDIA's plugin, or GKE's build of it, serves on a socket of this name: `nvidia-gpu.sock` for
/// `nvidia.com/gpu` (`internal/plugin/server.go` of NVIDIA/k8s-device-plugin), `nvidiaGPU-<time>.sock`
/// (`pkg/gpu/nvidia/manager.go` of GoogleCloudPlatform/container-engine-accelerators).
#[must_use]
pub fn resource_of_socket(name: &str) -> Option<String> {
    let base = name.strip_suffix(".sock")?;
    match base.strip_prefix("nvidia-") {
        Some(resource) if !resource.is_empty() => Some(format!("nvidia.com/{resource}")),
        Some(_) => None,
        None => base
            .starts_with("nvidiaGPU-")
            .then(|| "nvidia.com/gpu".to_owned()),
    }
}

/// Other advertisers, for the operator.
#[must_use]
pub fn advertisers(
    memory: &ForeignMemory,
    kubelet: Option<&KubeletDevices>,
) -> Vec<OtherAdvertiser> {
    let mut gpus: BTreeMap<&str, u32> = BTreeMap::new();
    for (resource, _) in memory.entries() {
        *gpus.entry(resource).or_default() += 1;
    }
    let partitioned = |resource: &str| {
        let mut shown = kubelet
            .into_iter()
            .flat_map(|kubelet| ids(kubelet, resource));
        shown.any(|(id, _)| id.contains("::") || id.starts_with("MIG-"))
    };
    let advertiser = |(resource, gpus): (&str, u32)| OtherAdvertiser {
        partitioned: partitioned(resource),
        resource: resource.to_owned(),
        gpus,
    };
    gpus.into_iter().map(advertiser).collect()
}

/// UUID → one who advertises it: who is shown before who is remembered.
#[must_use]
pub fn foreign(seen: Seen, memory: &ForeignMemory) -> BTreeMap<String, Foreign> {
    let mut found = BTreeMap::new();
    for (uuid, resources) in seen {
        if let Some((resource, holder)) = resources.into_iter().next() {
            let shown = true;
            found.insert(
                uuid,
                Foreign {
                    resource,
                    holder,
                    shown,
                },
            );
        }
    }
    for (resource, uuid) in memory.entries() {
        found.entry(uuid.clone()).or_insert_with(|| Foreign {
            resource: resource.clone(),
            holder: None,
            shown: false,
        });
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
    if all.iter().all(|foreign| !foreign.shown) {
        let message = format!(
            "another device plugin advertised {} of this node's GPUs as {resource}; they are handed out here once the kubelet has not shown that for six minutes",
            all.len()
        );
        return FindingId::ForeignGpuAdvertiser.about(resource, message);
    }
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

fn meant<'a>(resource: &str, id: &str, gpus: &'a [DriverGpu]) -> Vec<&'a String> {
    let named = |gpu: &&DriverGpu| id.contains(gpu.uuid.as_str());
    let named: Vec<&String> = gpus.iter().filter(named).map(|gpu| &gpu.uuid).collect();
    if !named.is_empty() || !resource.starts_with("nvidia.com/") {
        return named;
    }
    // Copies for time slicing: `0::3`.
    let id = id.split("::").next().unwrap_or_default();
    match numbered(id, gpus) {
        Some(gpu) => vec![&gpu.uuid],
        None if is_of_something_else(id) => Vec::new(),
        None => gpus.iter().map(|gpu| &gpu.uuid).collect(),
    }
}

fn numbered<'a>(id: &str, gpus: &'a [DriverGpu]) -> Option<&'a DriverGpu> {
    if let Some(minor) = id.strip_prefix("nvidia") {
        let minor = minor.parse().ok()?;
        return gpus.iter().find(|gpu| gpu.minor == Some(minor));
    }
    gpus.get(id.parse::<usize>().ok()?)
}

/// NICs are advertised under `nvidia.com/` too, by PCI address or as subfunctions; and a GPU of another UUID is none of
/// the GPUs that the driver has.
fn is_of_something_else(id: &str) -> bool {
    let uuid = |text: &str| {
        let lengths = text.split('-').map(str::len);
        let hex = text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
        hex && lengths.eq([8, 4, 4, 4, 12])
    };
    id.parse::<PciAddress>().is_ok()
        || id.starts_with("mlx5_core.")
        || id.strip_prefix("GPU-").is_some_and(uuid)
}

#[cfg(test)]
mod tests;
