//! GPUs: PCI functions of the chosen vendors, with what NVIDIA's driver says in `/proc/driver/nvidia/gpus`.

use std::collections::BTreeMap;

use topology::fact::Fact;
use topology::machine::{Gpu, PciFunction};
use topology::pci::PciAddress;

use super::Options;
use super::functions::DEVICES;
use crate::parse::{checked, field, flatten, hex, parsed};
use crate::root::Root;

/// One directory per GPU that the driver has.
pub(crate) const DRIVER_GPUS: &str = "/proc/driver/nvidia/gpus";

/// GPUs in the order of their PCI addresses.
pub(crate) fn read(
    root: &Root,
    functions: &BTreeMap<PciAddress, PciFunction>,
    options: &Options,
    notes: &mut Vec<String>,
) -> Vec<Gpu> {
    let mut driver = driver_entries(root, notes);
    let candidates = functions
        .iter()
        .filter(|(_, function)| function.is_gpu(&options.gpu_vendors));
    let mut gpus = Vec::new();
    for (address, function) in candidates {
        let information = driver.remove(address);
        if root
            .link_target(&format!("{DEVICES}/{address}/physfn"))
            .is_ok()
        {
            notes.push(format!(
                "{address}: a GPU's virtual function, which belongs to a guest and is left out"
            ));
            continue;
        }
        gpus.push(gpu(
            root,
            gpus.len(),
            *address,
            function,
            information.as_deref(),
        ));
    }
    for (address, path) in driver {
        notes.push(format!(
            "{path}: the driver has a GPU at {address}, where /sys shows none of the chosen vendors"
        ));
    }
    notes.extend(same_uuids(&gpus));
    gpus
}

/// Directories of the driver by PCI address: they are written `0000:0C:00.0` or `0000:0c:00.0`.
fn driver_entries(root: &Root, notes: &mut Vec<String>) -> BTreeMap<PciAddress, String> {
    let names = match root.entries(DRIVER_GPUS) {
        Fact::Known(names) => names,
        Fact::Absent => Vec::new(),
        Fact::Unreadable(why) => {
            notes.push(format!("the GPU driver's list is not readable: {why}"));
            Vec::new()
        }
    };
    names
        .iter()
        .filter_map(|name| {
            Some((
                name.parse().ok()?,
                format!("{DRIVER_GPUS}/{name}/information"),
            ))
        })
        .collect()
}

fn gpu(
    root: &Root,
    index: usize,
    pci: PciAddress,
    function: &PciFunction,
    information: Option<&str>,
) -> Gpu {
    let path = information.unwrap_or_default();
    let text = information.map_or(Fact::Absent, |path| root.read(path));
    let value = |key: &str| match &text {
        Fact::Known(text) => Fact::from(field(text, key).map(str::to_owned)),
        other => other.clone(),
    };
    Gpu {
        index,
        uuid: checked(
            value("GPU UUID"),
            path,
            "GPU UUID; the driver knows it once the GPU was opened",
            uuid,
        ),
        pci: Some(pci),
        minor: checked(value("Device Minor"), path, "device minor", |text| {
            text.parse().ok()
        }),
        numa: function.numa.clone(),
        product: value("Model"),
        bar1_bytes: bar1(root, &format!("{DEVICES}/{pci}/resource")),
        nvlinks: BTreeMap::new(),
    }
}

/// `GPU-` and five groups of hex digits; the driver prints question marks before it knows.
fn uuid(text: &str) -> Option<String> {
    let groups: Vec<_> = text.strip_prefix("GPU-")?.split('-').collect();
    let lengths = groups.iter().map(|group| group.len());
    let hex = groups
        .iter()
        .all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (hex && lengths.eq([8, 4, 4, 4, 12])).then(|| text.to_owned())
}

/// Second line of `resource` (start, end, flags): BAR1. All zeros means that none was assigned.
fn bar1(root: &Root, path: &str) -> Fact<u64> {
    flatten(parsed(root, path, "list of PCI resources", |text| {
        let mut words = text.lines().nth(1)?.split_whitespace();
        let (start, end): (u64, u64) = (hex(words.next()?)?, hex(words.next()?)?);
        Some(if end == 0 {
            None
        } else {
            Some(end.checked_sub(start)?.checked_add(1)?)
        })
    }))
}

fn same_uuids(gpus: &[Gpu]) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let known = gpus
        .iter()
        .filter_map(|gpu| Some((gpu.uuid.known()?, gpu.pci?)));
    known
        .filter_map(|(uuid, pci)| {
            seen.insert(uuid, pci)
                .map(|first| format!("{first} and {pci} both say {uuid}"))
        })
        .collect()
}
