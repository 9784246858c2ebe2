//! What `discover` says of a machine: devices, distances, pairs and reasons, as versioned data.
//!
//! Pure. [`crate::render`] makes a table and a picture of it; the JSON is for programs, which find its schema in
//! `docs/discover.schema.json` (made from these types by the feature `schema`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::distance::{Distance, DistanceSource};
use crate::machine::{Gpu, Machine, Nic, NicRole};
use crate::pairing::{self, Pairing};
use crate::paths::Paths;
use crate::policy::ResourcePolicy;

/// The schema that this code writes.
pub const SCHEMA: &str = "1.0";

/// Devices, distances and pairs of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// `MAJOR.MINOR`.
    pub schema: String,
    /// GPUs in the order of their index.
    pub gpus: Vec<GpuEntry>,
    /// RDMA devices in the order of their index.
    pub nics: Vec<NicEntry>,
    /// GPU name → NIC name → level.
    pub distances: BTreeMap<String, BTreeMap<String, Distance>>,
    /// Pairs in the order of the GPU index.
    pub pairs: Vec<PairEntry>,
    /// GPUs without a NIC.
    pub unpaired: Vec<UnpairedEntry>,
    /// What could not be read, contradicts itself or comes from elsewhere than `/sys`.
    pub notes: Vec<String>,
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GpuEntry {
    /// `GPU<index>`.
    pub name: String,
    /// Where a driver gives one.
    pub uuid: Option<String>,
    /// PCI address.
    pub pci: Option<String>,
    /// NUMA node; `None` where unknown.
    pub numa: Option<u32>,
    /// Product name.
    pub product: Option<String>,
}

/// One RDMA device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NicEntry {
    /// RDMA device name where known, else `NIC<index>`.
    pub name: String,
    /// RDMA device name.
    pub rdma: Option<String>,
    /// PCI address.
    pub pci: Option<String>,
    /// NUMA node; `None` where unknown.
    pub numa: Option<u32>,
    /// What it is used for.
    pub role: NicRole,
}

/// One pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PairEntry {
    /// GPU name.
    pub gpu: String,
    /// NIC names, best first.
    pub nics: Vec<String>,
    /// Distance to the first NIC.
    pub distance: Distance,
    /// PCI functions passed on the way to the first NIC, where the tree shows them.
    pub hops: Option<u32>,
    /// Whether another pair has the first NIC too.
    pub shared: bool,
    /// Why this NIC.
    pub reason: String,
}

/// One GPU without a NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnpairedEntry {
    /// GPU name.
    pub gpu: String,
    /// Why.
    pub reason: String,
}

/// Computes what there is to say of a machine under a policy.
#[must_use]
pub fn discovery(machine: &Machine, paths: &Paths, policy: &ResourcePolicy) -> Discovery {
    let (gpus, nics) = (sorted_gpus(machine), sorted_nics(machine));
    let names: BTreeMap<usize, String> = nics
        .iter()
        .map(|nic| (nic.index, nic_label(machine, nic)))
        .collect();
    let pairing = pairing::pair(machine, paths, policy);
    Discovery {
        schema: SCHEMA.to_owned(),
        gpus: gpus.iter().map(|gpu| gpu_entry(gpu)).collect(),
        nics: nics.iter().map(|nic| nic_entry(nic, &names)).collect(),
        distances: gpus
            .iter()
            .map(|gpu| (gpu.name(), row(paths, gpu, &names)))
            .collect(),
        pairs: pairs(&pairing, paths, &names),
        unpaired: pairing
            .unpaired
            .into_iter()
            .map(|u| UnpairedEntry {
                gpu: format!("GPU{}", u.gpu),
                reason: u.reason,
            })
            .collect(),
        notes: notes(machine, paths, &gpus, &nics),
    }
}

pub(crate) fn sorted_gpus(machine: &Machine) -> Vec<&Gpu> {
    let mut gpus: Vec<&Gpu> = machine.gpus.iter().collect();
    gpus.sort_by_key(|gpu| gpu.index);
    gpus
}

pub(crate) fn sorted_nics(machine: &Machine) -> Vec<&Nic> {
    let mut nics: Vec<&Nic> = machine.nics.iter().collect();
    nics.sort_by_key(|nic| nic.index);
    nics
}

/// The NIC's name; in a description that names two NICs alike, with the index.
pub(crate) fn nic_label(machine: &Machine, nic: &Nic) -> String {
    let name = nic.name();
    let alike = machine
        .nics
        .iter()
        .filter(|other| other.name() == name)
        .count();
    if alike > 1 {
        format!("{name} (NIC{})", nic.index)
    } else {
        name
    }
}

fn gpu_entry(gpu: &Gpu) -> GpuEntry {
    GpuEntry {
        name: gpu.name(),
        uuid: gpu.uuid.known().cloned(),
        pci: gpu.pci.map(|pci| pci.to_string()),
        numa: gpu.numa.known().copied(),
        product: gpu.product.known().cloned(),
    }
}

fn nic_entry(nic: &Nic, names: &BTreeMap<usize, String>) -> NicEntry {
    NicEntry {
        name: names.get(&nic.index).cloned().unwrap_or_default(),
        rdma: nic.rdma.clone(),
        pci: nic.pci.map(|pci| pci.to_string()),
        numa: nic.numa.known().copied(),
        role: nic.role,
    }
}

fn row(paths: &Paths, gpu: &Gpu, names: &BTreeMap<usize, String>) -> BTreeMap<String, Distance> {
    names
        .iter()
        .map(|(nic, name)| (name.clone(), paths.distance(gpu.index, *nic)))
        .collect()
}

fn pairs(pairing: &Pairing, paths: &Paths, names: &BTreeMap<usize, String>) -> Vec<PairEntry> {
    let hops = |pair: &pairing::Pair| paths.gpu_nic(pair.gpu, *pair.nics.first()?)?.hops;
    let entry = |pair: &pairing::Pair| PairEntry {
        gpu: format!("GPU{}", pair.gpu),
        nics: pair
            .nics
            .iter()
            .filter_map(|nic| names.get(nic).cloned())
            .collect(),
        distance: pair.distance,
        hops: hops(pair),
        shared: pair.shared,
        reason: pair.reason.clone(),
    };
    pairing.pairs.iter().map(entry).collect()
}

fn notes(machine: &Machine, paths: &Paths, gpus: &[&Gpu], nics: &[&Nic]) -> Vec<String> {
    let mut notes: BTreeSet<String> = machine.notes.iter().cloned().collect();
    let cells = gpus.iter().flat_map(|gpu| {
        nics.iter()
            .filter_map(|nic| paths.gpu_nic(gpu.index, nic.index))
    });
    for path in cells {
        let note = match (&path.source, path.distance) {
            (DistanceSource::TopologyFile(file), _) => {
                format!("some distances come from the topology file {file}")
            }
            (DistanceSource::Matrix, _) => {
                "some distances come from a printed matrix, not from /sys".to_owned()
            }
            (DistanceSource::Sysfs, Distance::Unknown) => {
                "some distances are unknown: no common PCI ancestor, and no NUMA node".to_owned()
            }
            (DistanceSource::Sysfs, _) => continue,
        };
        notes.insert(note);
    }
    notes.into_iter().collect()
}

#[cfg(test)]
mod tests;
