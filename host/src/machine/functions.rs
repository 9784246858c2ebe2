//! PCI functions and their ancestry, from `/sys/bus/pci/devices`.
//!
//! Each entry is a link; the real path holds the ancestry: `/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0`.

use std::collections::BTreeMap;

use topology::fact::Fact;
use topology::machine::{PciFunction, PciKind, PciParent};
use topology::pci::PciAddress;

use super::config::{PortType, port_type};
use crate::parse::{hex, numa_node, parsed};
use crate::root::{Root, last_name};

/// One link per PCI function.
pub(crate) const DEVICES: &str = "/sys/bus/pci/devices";

/// What holds the capability list; extended capabilities come after it.
const CONVENTIONAL_CONFIG: u64 = 256;

/// Every PCI function; GPUs and NICs still count as `Other`.
pub(crate) fn read(root: &Root, notes: &mut Vec<String>) -> BTreeMap<PciAddress, PciFunction> {
    let names = match root.entries(DEVICES) {
        Fact::Known(names) => names,
        Fact::Absent => {
            notes.push(format!("{DEVICES} is absent: no PCI bus is visible"));
            return BTreeMap::new();
        }
        Fact::Unreadable(why) => {
            notes.push(format!("PCI functions are not readable: {why}"));
            return BTreeMap::new();
        }
    };
    names
        .iter()
        .filter_map(|name| entry(root, name, notes))
        .collect()
}

fn entry(root: &Root, name: &str, notes: &mut Vec<String>) -> Option<(PciAddress, PciFunction)> {
    let link = format!("{DEVICES}/{name}");
    let address = name
        .parse()
        .map_err(|error| notes.push(format!("{link}: {error}")))
        .ok()?;
    let path = root
        .resolve(&link)
        .map_err(|error| notes.push(format!("{link} is left out: {}", error.chain())))
        .ok()?;
    if last_name(&path) != name {
        notes.push(format!("{link} leads to {path}, which bears another name"));
    }
    Some((address, function(root, &path)))
}

fn function(root: &Root, path: &str) -> PciFunction {
    let class = parsed(root, &format!("{path}/class"), "PCI class", hex::<u32>);
    let kind = kind(root, path, class.known().copied());
    PciFunction {
        parent: parent(path),
        kind,
        numa: numa_node(root, &format!("{path}/numa_node")),
        class,
        vendor: parsed(root, &format!("{path}/vendor"), "PCI vendor id", hex::<u16>),
        device: parsed(root, &format!("{path}/device"), "PCI device id", hex::<u16>),
    }
}

/// What the last but one component of the real path says.
fn parent(path: &str) -> PciParent {
    let above = path.rsplit('/').nth(1).unwrap_or_default();
    if let Ok(bridge) = above.parse() {
        return PciParent::Bridge(bridge);
    }
    if above.starts_with("pci") && above.contains(':') {
        return PciParent::HostBridge(above.to_owned());
    }
    PciParent::Unknown
}

/// By the PCI Express capability where it is readable, else by the place in the chain. A function that is no bridge is
/// not asked: a read of its configuration space wakes a device that sleeps, and may hang on one that is broken.
fn kind(root: &Root, path: &str, class: Option<u32>) -> PciKind {
    let is_bridge = class.is_some_and(|class| class >> 8 == 0x0604);
    if class.is_some() && !is_bridge {
        return PciKind::Other;
    }
    let config = root.bytes_up_to(&format!("{path}/config"), CONVENTIONAL_CONFIG);
    let config = config.unwrap_or_default();
    match port_type(&config) {
        PortType::Express(4) => PciKind::RootPort,
        PortType::Express(5) => PciKind::SwitchUpstream,
        PortType::Express(6) => PciKind::SwitchDownstream,
        PortType::Express(7 | 8) => PciKind::Bridge,
        PortType::Conventional if is_bridge => PciKind::Bridge,
        PortType::Hidden if is_bridge => by_place(path),
        PortType::Express(_) | PortType::Conventional | PortType::Hidden => PciKind::Other,
    }
}

/// The first bridge below a host bridge is a root port; below it upstream and downstream ports of switches alternate.
fn by_place(path: &str) -> PciKind {
    let bridges = path
        .rsplit('/')
        .skip(1)
        .take_while(|name| name.parse::<PciAddress>().is_ok())
        .count();
    match bridges {
        0 => PciKind::RootPort,
        odd if odd % 2 == 1 => PciKind::SwitchUpstream,
        _ => PciKind::SwitchDownstream,
    }
}

#[cfg(test)]
mod tests;
