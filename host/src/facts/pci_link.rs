//! PCIe links of GPUs and NICs. Read, not judged: an idle GPU trains down by itself, an emulated bridge shows 2.5 GT/s x1.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::Machine;
use topology::pci::PciAddress;

use crate::machine::functions::DEVICES;
use crate::parse::parsed;
use crate::root::Root;

/// One link, at the device's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PciLink {
    /// `32.0 GT/s PCIe`.
    pub current_speed: Fact<String>,
    /// Lanes in use.
    pub current_width: Fact<u32>,
    /// What the device can do.
    pub max_speed: Fact<String>,
    /// Lanes that the device has.
    pub max_width: Fact<u32>,
    /// NUMA-independent identity of the IOMMU group, where there is an IOMMU.
    pub iommu_group: Fact<String>,
    /// `identity` is passthrough; `DMA` and `DMA-FQ` translate.
    pub iommu_type: Fact<String>,
}

/// Links of every GPU and NIC.
#[must_use]
pub fn links(root: &Root, machine: &Machine) -> BTreeMap<PciAddress, PciLink> {
    let gpus = machine.gpus.iter().filter_map(|gpu| gpu.pci);
    let nics = machine.nics.iter().filter_map(|nic| nic.pci);
    gpus.chain(nics).map(|pci| (pci, link(root, pci))).collect()
}

fn link(root: &Root, pci: PciAddress) -> PciLink {
    let path = format!("{DEVICES}/{pci}");
    let text = |file: &str| root.read(&format!("{path}/{file}"));
    let width = |file: &str| {
        parsed(root, &format!("{path}/{file}"), "link width", |text| {
            text.parse().ok()
        })
    };
    PciLink {
        current_speed: text("current_link_speed"),
        current_width: width("current_link_width"),
        max_speed: text("max_link_speed"),
        max_width: width("max_link_width"),
        iommu_group: root.read_link_name(&format!("{path}/iommu_group")),
        iommu_type: text("iommu_group/type"),
    }
}
