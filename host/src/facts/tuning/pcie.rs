//! PCIe settings of GPUs, NICs and the ports above them, from their configuration spaces.
//!
//! Without root only 64 bytes are readable, which hold none of this: that is `Unreadable`, never "off". A function that
//! sleeps is not asked: reading its configuration space would wake it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::{Machine, PciParent};
use topology::pci::PciAddress;

use crate::machine::express::{
    CONFIG_LENGTH, Hidden, acs, ats_control, device_control, size, slot_power_milliwatts,
};
use crate::machine::functions::DEVICES;
use crate::parse::parsed;
use crate::root::Root;

/// Drivers that hold a function for a guest.
const GUEST_DRIVERS: &[&str] = &[
    "mlx5_vfio_pci",
    "nvgrace_gpu_vfio_pci",
    "nvidia-vgpu-vfio",
    "pci-stub",
    "pciback",
    "vfio-pci",
];

/// Settings of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PcieFunction {
    /// Access control services; `Absent` where the function has no such capability.
    pub acs: Fact<AcsBits>,
    /// Whether address translation services are on; `Absent` where the function has none.
    pub ats: Fact<bool>,
    /// Maximum payload in bytes.
    pub max_payload: Fact<u32>,
    /// Maximum read request in bytes.
    pub max_read_request: Fact<u32>,
    /// What the slot behind a port may draw, in milliwatts; `Absent` where it has no slot or says nothing.
    pub slot_power: Fact<u32>,
    /// The hottest sensor, in thousandths of a degree Celsius; `Absent` where the kernel shows none.
    pub temperature: Fact<i64>,
    /// The IOMMU group, where there is an IOMMU.
    pub iommu_group: Fact<String>,
    /// `identity` is passthrough; `DMA` and `DMA-FQ` translate.
    pub iommu_type: Fact<String>,
}

/// ACS of one port: what it can do and what is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcsBits {
    /// Capability register.
    pub capability: u16,
    /// Control register.
    pub control: u16,
}

/// Requests between peers go up to the root complex.
pub const REQUEST_REDIRECT: u16 = 1 << 2;
/// Completions between peers go up to the root complex.
pub const COMPLETION_REDIRECT: u16 = 1 << 3;
/// What comes from below for below goes up first.
pub const UPSTREAM_FORWARDING: u16 = 1 << 4;
/// The bits that send traffic between peers to the root complex.
pub const REDIRECTS: u16 = REQUEST_REDIRECT | COMPLETION_REDIRECT | UPSTREAM_FORWARDING;

impl AcsBits {
    /// The redirecting bits that are on.
    #[must_use]
    pub fn redirects(self) -> u16 {
        self.control & REDIRECTS
    }
}

/// Settings of every GPU and NIC and of every port above one.
pub(crate) fn read(root: &Root, machine: &Machine) -> BTreeMap<PciAddress, PcieFunction> {
    let gpus = machine.gpus.iter().filter_map(|gpu| gpu.pci);
    let ends: Vec<_> = gpus
        .chain(machine.nics.iter().filter_map(|nic| nic.pci))
        .collect();
    let mut wanted: BTreeSet<_> = ends.iter().copied().collect();
    wanted.extend(ends.iter().flat_map(|pci| above(machine, *pci)));
    wanted
        .into_iter()
        .map(|pci| (pci, function(root, pci)))
        .collect()
}

/// The bridges above a function, nearest first.
#[must_use]
pub fn above(machine: &Machine, pci: PciAddress) -> Vec<PciAddress> {
    let mut bridges = Vec::new();
    let mut next = Some(pci);
    while let Some(parent) = next
        .and_then(|at| machine.functions.get(&at))
        .map(|f| &f.parent)
    {
        next = match parent {
            PciParent::Bridge(bridge) if !bridges.contains(bridge) => Some(*bridge),
            _ => None,
        };
        bridges.extend(next);
    }
    bridges
}

fn function(root: &Root, pci: PciAddress) -> PcieFunction {
    let path = format!("{DEVICES}/{pci}");
    let config = config(root, &path);
    let control = of(&config, device_control);
    let field = |shift: u16| {
        let value = control
            .clone()
            .map(|register| size(register.value >> shift & 0x7));
        match value {
            Fact::Known(Some(bytes)) => Fact::Known(bytes),
            Fact::Known(None) => Fact::Unreadable(format!("{path}/config: a reserved size")),
            Fact::Absent => Fact::Absent,
            Fact::Unreadable(why) => Fact::Unreadable(why),
        }
    };
    PcieFunction {
        acs: of(&config, acs).map(|acs| AcsBits {
            capability: acs.capability,
            control: acs.control.value,
        }),
        ats: of(&config, ats_control).map(|register| register.value & 0x8000 != 0),
        max_payload: field(5),
        max_read_request: field(12),
        slot_power: of(&config, slot_power_milliwatts),
        temperature: temperature(root, &path),
        iommu_group: root.read_link_name(&format!("{path}/iommu_group")),
        iommu_type: root.read(&format!("{path}/iommu_group/type")),
    }
}

/// The whole space, or why not.
fn config(root: &Root, path: &str) -> Result<Vec<u8>, String> {
    if root
        .read(&format!("{path}/power/runtime_status"))
        .known()
        .map(String::as_str)
        == Some("suspended")
    {
        return Err(format!(
            "{path}: the function sleeps, and is not woken to be read"
        ));
    }
    let file = format!("{path}/config");
    root.bytes_up_to(&file, CONFIG_LENGTH)
        .map_err(|error| error.chain())
}

/// One register; a space that is too short says why.
fn of<T>(
    config: &Result<Vec<u8>, String>,
    read: impl Fn(&[u8]) -> Result<Option<T>, Hidden>,
) -> Fact<T> {
    match config.as_ref().map(|bytes| read(bytes)) {
        Ok(Ok(value)) => Fact::from(value),
        Ok(Err(hidden)) => Fact::Unreadable(format!("read config: {hidden}")),
        Err(why) => Fact::Unreadable(why.clone()),
    }
}

/// `hwmon/hwmon<N>/temp<M>_input` of the function (kernel ABI `sysfs-class-hwmon`).
fn temperature(root: &Root, path: &str) -> Fact<i64> {
    let monitors = match root.entries(&format!("{path}/hwmon")) {
        Fact::Known(names) => names,
        Fact::Absent => return Fact::Absent,
        Fact::Unreadable(why) => return Fact::Unreadable(why),
    };
    let mut hottest: Fact<i64> = Fact::Absent;
    for monitor in monitors {
        let directory = format!("{path}/hwmon/{monitor}");
        let names = root
            .entries(&directory)
            .known()
            .cloned()
            .unwrap_or_default();
        let is_input = |name: &&String| name.starts_with("temp") && name.ends_with("_input");
        for name in names.iter().filter(is_input) {
            let file = format!("{directory}/{name}");
            let found = parsed(root, &file, "temperature", |text| text.parse::<i64>().ok());
            hottest = match (hottest, found) {
                (Fact::Known(a), Fact::Known(b)) => Fact::Known(a.max(b)),
                (Fact::Known(a), _) => Fact::Known(a),
                (_, other) => other,
            };
        }
    }
    hottest
}

/// The functions that a hypervisor's driver holds.
#[must_use]
pub fn passed_through(root: &Root) -> Fact<BTreeMap<PciAddress, String>> {
    let mut held = BTreeMap::new();
    for driver in GUEST_DRIVERS {
        match root.entries(&format!("/sys/bus/pci/drivers/{driver}")) {
            Fact::Known(names) => {
                let functions = names.iter().filter_map(|name| name.parse().ok());
                held.extend(functions.map(|pci| (pci, (*driver).to_owned())));
            }
            Fact::Absent => {}
            Fact::Unreadable(why) => return Fact::Unreadable(why),
        }
    }
    Fact::Known(held)
}
