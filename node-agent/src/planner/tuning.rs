//! What is asked of the host around the NICs: PCIe, firmware, firewall, RDMA namespaces.

mod acs;
mod firewall;
mod link_type;
mod memlock;
mod rdma_netns;
mod read_request;

use std::collections::BTreeSet;

use host::facts::tuning::Tuning;
use topology::fact::Fact;
use topology::machine::NicRole;
use topology::pci::PciAddress;

use super::{Plan, World};
use crate::action::TuningChange;
use crate::host_state::HostState;

pub(crate) use acs::needless as needless_redirects;

pub(super) fn plan(plan: &mut Plan, world: &World<'_>) {
    let config = &world.desired.config;
    memlock::find(plan, world);
    if config.tuning.acs.is_some() {
        acs::disable(plan, world);
    }
    if let Some(bytes) = config.tuning.max_read_request_bytes {
        read_request::set(plan, world, bytes);
    }
    if let Some(mode) = config.tuning.rdma_netns {
        rdma_netns::set(plan, world, mode);
    }
    if let Some(link) = config.fabric.link_layer {
        link_type::set(plan, world, link, &management(world));
    }
    if let Some(mode) = config.fabric.firewall {
        firewall::open(plan, world, mode);
    }
}

/// Whether a change that needs a reboot is in effect; absent where what would show it is not there.
pub(super) fn in_effect(state: &HostState, change: &TuningChange) -> Fact<bool> {
    match change {
        TuningChange::LinkType {
            function,
            port,
            link,
        } => link_type::in_effect(&state.facts.machine, *function, *port, *link),
        TuningChange::RdmaNetns { shared } => rdma_netns::in_effect(state, *shared),
        TuningChange::AcsRedirects { .. }
        | TuningChange::MaxReadRequest { .. }
        | TuningChange::Firewall { .. } => Fact::Absent,
    }
}

fn tuning(state: &HostState) -> &Tuning {
    &state.facts.tuning
}

/// Functions that carry the node's own addresses.
fn management(world: &World<'_>) -> BTreeSet<PciAddress> {
    let nics = world.machine.nics.iter();
    nics.filter(|nic| nic.role == NicRole::Management)
        .filter_map(|nic| nic.pci)
        .collect()
}

/// Why the kernel does not let configuration spaces be written, or why that is unknown.
fn locked_down(state: &HostState) -> Option<String> {
    match &tuning(state).lockdown {
        Fact::Known(mode) if mode != "none" => Some(format!(
            "the kernel is locked down ({mode}), which forbids writes to PCI configuration; set it in the firmware's setup, or boot without lockdown"
        )),
        Fact::Known(_) | Fact::Absent => None,
        Fact::Unreadable(why) => Some(format!(
            "whether the kernel is locked down is unknown: {why}"
        )),
    }
}

#[cfg(test)]
mod tests;
