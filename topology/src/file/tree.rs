//! The PCIe tree of a machine file.

use std::collections::BTreeMap;

use super::devices::not_told;
use super::{FileError, raw};
use crate::fact::Fact;
use crate::machine::{PciFunction, PciKind, PciParent};
use crate::pci::PciAddress;

pub(super) fn functions(tree: &raw::Tree) -> Result<BTreeMap<PciAddress, PciFunction>, FileError> {
    let mut functions = BTreeMap::new();
    for node in &tree.nodes {
        let address = address(&node.pci, "pcie_tree.nodes.pci")?;
        if functions.insert(address, function(node)?).is_some() {
            return Err(FileError::DuplicateAddress(address));
        }
    }
    Ok(functions)
}

fn function(node: &raw::Node) -> Result<PciFunction, FileError> {
    let field = |name: &str| format!("pcie_tree.nodes[{}].{name}", node.pci);
    let parent = match (&node.parent, &node.host_bridge) {
        (Some(parent), _) => PciParent::Bridge(address(parent, &field("parent"))?),
        (None, Some(name)) => PciParent::HostBridge(name.clone()),
        (None, None) => PciParent::Unknown,
    };
    Ok(PciFunction {
        parent,
        kind: kind(&node.kind, &field("kind"))?,
        numa: numa(node.numa, &field("numa"))?,
        class: hex(node.class.as_deref(), &field("class"))?,
        vendor: hex(node.vendor.as_deref(), &field("vendor"))?,
        device: hex(node.device.as_deref(), &field("device"))?,
    })
}

fn kind(text: &str, field: &str) -> Result<PciKind, FileError> {
    match text {
        "root-port" => Ok(PciKind::RootPort),
        "switch-upstream" => Ok(PciKind::SwitchUpstream),
        "switch-downstream" => Ok(PciKind::SwitchDownstream),
        "bridge" => Ok(PciKind::Bridge),
        "gpu" => Ok(PciKind::Gpu),
        "nic" => Ok(PciKind::Nic),
        "other" => Ok(PciKind::Other),
        _ => {
            let remedy = "root-port, switch-upstream, switch-downstream, bridge, gpu, nic or other";
            Err(FileError::value(field, text, remedy))
        }
    }
}

pub(super) fn address(text: &str, field: &str) -> Result<PciAddress, FileError> {
    text.parse().map_err(|_| {
        FileError::value(
            field,
            text,
            "domain:bus:device.function in hex, as in 0000:0c:00.0",
        )
    })
}

/// −1 is the kernel's way to say that a device has no NUMA node.
pub(super) fn numa(node: Option<i64>, field: &str) -> Result<Fact<u32>, FileError> {
    match node {
        None => Ok(not_told()),
        Some(-1) => Ok(Fact::Absent),
        Some(node) => {
            let node = u32::try_from(node)
                .map_err(|_| FileError::value(field, node, "a NUMA node, or -1 for none"))?;
            Ok(Fact::Known(node))
        }
    }
}

fn hex<T: TryFrom<u32>>(text: Option<&str>, field: &str) -> Result<Fact<T>, FileError> {
    let Some(text) = text else {
        return Ok(not_told());
    };
    let number = u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    let value = number.and_then(|number| T::try_from(number).ok());
    value
        .map(Fact::Known)
        .ok_or_else(|| FileError::value(field, text, "hex digits after 0x, as in 0x15b3"))
}
