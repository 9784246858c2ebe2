//! Ports of an RDMA device: `ports/<n>/{state,link_layer,rate}`, kernel `Documentation/ABI/stable/sysfs-class-infiniband`.
//!
//! The device plugin reads the same files through [`state`] while it serves.

use topology::fact::Fact;
use topology::machine::{LinkLayer, Port, PortState};

use super::nics::INFINIBAND;
use crate::parse::{flatten, parsed};
use crate::root::Root;

/// State of one port of an RDMA device, now.
#[must_use]
pub fn state(root: &Root, rdma: &str, port: u32) -> Fact<PortState> {
    parsed(
        root,
        &format!("{INFINIBAND}/{rdma}/ports/{port}/state"),
        "port state",
        port_state,
    )
}

/// Ports of the device at `path`, in the order of their number.
pub(crate) fn read(root: &Root, path: &str) -> Vec<Port> {
    let names = root
        .entries(&format!("{path}/ports"))
        .known()
        .cloned()
        .unwrap_or_default();
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
        .into_iter()
        .map(|number| port(root, &format!("{path}/ports/{number}"), number))
        .collect()
}

fn port(root: &Root, path: &str, number: u32) -> Port {
    Port {
        number,
        state: parsed(root, &format!("{path}/state"), "port state", port_state),
        link_layer: link_layer(root, &format!("{path}/link_layer")),
        rate_mbps: parsed(root, &format!("{path}/rate"), "rate in Gb/sec", rate_mbps),
    }
}

/// `4: ACTIVE`; the number counts, the word has changed between kernels.
pub(crate) fn port_state(text: &str) -> Option<PortState> {
    match text.split(':').next()?.trim() {
        "1" => Some(PortState::Down),
        "2" => Some(PortState::Init),
        "3" => Some(PortState::Armed),
        "4" => Some(PortState::Active),
        "5" => Some(PortState::ActiveDefer),
        _ => None,
    }
}

/// The kernel's third answer, `Unknown` or `Unspecified`, means that the device has none.
fn link_layer(root: &Root, path: &str) -> Fact<LinkLayer> {
    flatten(parsed(root, path, "link layer", |text| match text {
        "InfiniBand" => Some(Some(LinkLayer::InfiniBand)),
        "Ethernet" => Some(Some(LinkLayer::Ethernet)),
        "Unknown" | "Unspecified" => Some(None),
        _ => None,
    }))
}

/// `400 Gb/sec (4X NDR)` is 400000, `2.5 Gb/sec (1X SDR)` is 2500.
pub(crate) fn rate_mbps(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    if !unit.starts_with("Gb/sec") || tenth.len() != 1 {
        return None;
    }
    let (whole, tenth): (u64, u64) = (whole.parse().ok()?, tenth.parse().ok()?);
    whole.checked_mul(1000)?.checked_add(tenth * 100)
}

#[cfg(test)]
mod tests;
