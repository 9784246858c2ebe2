//! What only NVIDIA's management library knows: links between GPUs, and the CUDA version that the driver supports.
//!
//! The library is loaded at run time and let go again at once: no `/dev/nvidia*` stays open while nothing is asked. A
//! missing library is a fact, not a failure. Called by the agent's probing subcommand.

use std::collections::BTreeMap;

use nvml_wrapper::enum_wrappers::nv_link::IntDeviceType;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};
use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::Machine;
use topology::pci::PciAddress;

/// More links than any GPU has (`NVML_NVLINK_MAX_LINKS` is 18).
const MAX_LINKS: u32 = 36;

/// What the library says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NvmlFacts {
    /// Driver version.
    pub driver_version: Fact<String>,
    /// Highest CUDA version that the driver supports: `12.8`.
    pub cuda_version: Fact<String>,
    /// GPUs that the library shows.
    pub gpus: Vec<NvmlGpu>,
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NvmlGpu {
    /// PCI address.
    pub pci: Fact<PciAddress>,
    /// `GPU-…`.
    pub uuid: Fact<String>,
    /// Minor number.
    pub minor: Fact<u32>,
    /// Active links to other GPUs, by their PCI address.
    pub peer_links: BTreeMap<PciAddress, u32>,
    /// Active links to switches, or to peers that a guest cannot see.
    pub switch_links: u32,
}

/// Asks the library once.
#[must_use]
pub fn read() -> Fact<NvmlFacts> {
    match Nvml::init() {
        Ok(nvml) => facts(&nvml),
        Err(error) => Fact::Unreadable(format!("load libnvidia-ml.so.1: {error}")),
    }
}

fn facts(nvml: &Nvml) -> Fact<NvmlFacts> {
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => return Fact::Unreadable(format!("nvmlDeviceGetCount: {error}")),
    };
    let cuda = |version| {
        format!(
            "{}.{}",
            cuda_driver_version_major(version),
            cuda_driver_version_minor(version)
        )
    };
    let gpus = (0..count).map(|index| {
        nvml.device_by_index(index)
            .map_or_else(|error| lost(index, &error), |gpu| read_gpu(&gpu))
    });
    Fact::Known(NvmlFacts {
        driver_version: fact("nvmlSystemGetDriverVersion", nvml.sys_driver_version()),
        cuda_version: fact(
            "nvmlSystemGetCudaDriverVersion",
            nvml.sys_cuda_driver_version(),
        )
        .map(cuda),
        gpus: gpus.collect(),
    })
}

/// A GPU that has fallen off the bus is still counted.
fn lost(index: u32, error: &NvmlError) -> NvmlGpu {
    let why = format!("nvmlDeviceGetHandleByIndex {index}: {error}");
    NvmlGpu {
        pci: Fact::Unreadable(why.clone()),
        uuid: Fact::Unreadable(why.clone()),
        minor: Fact::Unreadable(why),
        peer_links: BTreeMap::new(),
        switch_links: 0,
    }
}

fn fact<T>(call: &str, result: Result<T, NvmlError>) -> Fact<T> {
    match result {
        Ok(value) => Fact::Known(value),
        Err(NvmlError::NotSupported) => Fact::Absent,
        Err(error) => Fact::Unreadable(format!("{call}: {error}")),
    }
}

/// NVML writes domains with eight digits and capitals; the kernel's form is the shorter one.
fn address(call: &str, bus_id: Result<String, NvmlError>) -> Fact<PciAddress> {
    match fact(call, bus_id) {
        Fact::Known(text) => match text.parse() {
            Ok(address) => Fact::Known(address),
            Err(error) => Fact::Unreadable(format!("{call}: {error}")),
        },
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why),
    }
}

fn read_gpu(device: &Device<'_>) -> NvmlGpu {
    let mut gpu = NvmlGpu {
        pci: address(
            "nvmlDeviceGetPciInfo",
            device.pci_info().map(|info| info.bus_id),
        ),
        uuid: fact("nvmlDeviceGetUUID", device.uuid()),
        minor: fact("nvmlDeviceGetMinorNumber", device.minor_number()),
        peer_links: BTreeMap::new(),
        switch_links: 0,
    };
    for link in 0..MAX_LINKS {
        add_link(device, link, &mut gpu);
    }
    gpu
}

/// Counts an active link for its peer; a link that is off or not there counts for nobody.
fn add_link(device: &Device<'_>, number: u32, gpu: &mut NvmlGpu) {
    let link = device.link_wrapper_for(number);
    if !link.is_active().unwrap_or(false) {
        return;
    }
    let to_gpu = matches!(link.remote_device_type(number), Ok(IntDeviceType::Gpu));
    let peer = address(
        "nvmlDeviceGetNvLinkRemotePciInfo",
        link.remote_pci_info().map(|info| info.bus_id),
    );
    match peer.known().filter(|_| to_gpu) {
        Some(peer) => *gpu.peer_links.entry(*peer).or_default() += 1,
        None => gpu.switch_links += 1,
    }
}

/// Fills in the links between the machine's GPUs. Two GPUs that both reach switches have the smaller number of links.
pub fn add_nvlinks(machine: &mut Machine, nvml: &NvmlFacts) {
    let by_address: BTreeMap<_, _> = nvml
        .gpus
        .iter()
        .filter_map(|gpu| Some((*gpu.pci.known()?, gpu)))
        .collect();
    let places: Vec<_> = machine
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu.index, gpu.pci?)))
        .collect();
    for gpu in &mut machine.gpus {
        let Some(own) = gpu.pci.and_then(|pci| by_address.get(&pci)) else {
            continue;
        };
        for (index, pci) in places.iter().filter(|(index, _)| *index != gpu.index) {
            let through_switches = by_address
                .get(pci)
                .map_or(0, |other| own.switch_links.min(other.switch_links));
            let links = own.peer_links.get(pci).copied().unwrap_or(through_switches);
            if links > 0 {
                gpu.nvlinks.insert(*index, links);
            }
        }
    }
}

#[cfg(test)]
mod tests;
