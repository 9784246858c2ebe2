//! Ports and their interfaces: what makes jobs slow or fail that nobody has asked the agent to set.

use std::collections::BTreeMap;

use crds::fabric::LinkLayer;
use crds::node::Finding;
use topology::machine::{Machine, Nic};

use super::compute;
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::planner::ROCE_HEADERS;
use crate::roles;

/// Sizes that an RDMA packet's payload can have (`enum ib_mtu`).
const RDMA_MTUS: [u32; 5] = [4096, 2048, 1024, 512, 256];

/// What a payload below this costs is worth telling.
const SMALL: u32 = 1024;

/// The bit of a `P_Key` that says full membership.
const FULL: u16 = 0x8000;

pub(super) fn findings(state: &HostState, machine: &Machine) -> Vec<Finding> {
    let mut found = Vec::new();
    for nic in compute(machine) {
        let layers = roles::link_layers(nic);
        if layers.contains(&LinkLayer::Ethernet) {
            found.extend(small_mtu(state, nic));
        } else if layers.contains(&LinkLayer::InfiniBand) {
            found.extend(first_pkey(state, nic));
        }
        found.extend(bond(nic));
    }
    found
}

fn small_mtu(state: &HostState, nic: &Nic) -> Option<Finding> {
    let name = nic.netdevs.first()?;
    let mtu = *state.facts.netdevs.get(name)?.mtu.known()?;
    let fits = |payload: &u32| payload + ROCE_HEADERS <= mtu;
    let payload = RDMA_MTUS.into_iter().find(fits)?;
    let message = format!(
        "{name} has an MTU of {mtu}, so RDMA packets carry {payload} bytes: slower, and a peer or library that takes 4096 for granted hangs. Set fabric.roce.netdevMtu to 4200 or more (9000 is usual) on all nodes, and on the switches first"
    );
    (payload <= SMALL).then(|| FindingId::RoceMtuSmall.about(nic.name(), message))
}

/// NCCL and NVSHMEM take index 0 where nobody tells them another one.
fn first_pkey(state: &HostState, nic: &Nic) -> Option<Finding> {
    let device = state.facts.rdma.get(&nic.name())?;
    let mut tables = device.ports.values().filter_map(|port| port.pkeys.known());
    let (seen, index, key) = tables.find_map(unusable_first)?;
    let message = format!(
        "P_Key index 0 {seen}, and full membership is at index {index} ({key:#06x}): jobs that take index 0 reach nobody. Set NCCL_IB_PKEY={index} and UCX_IB_PKEY={:#06x} in the pods, or have the subnet manager put the partition first (partitions.conf: indx0)",
        key & !FULL
    );
    Some(FindingId::DefaultPkeyUnusable.about(nic.name(), message))
}

fn unusable_first(table: &BTreeMap<u32, u16>) -> Option<(String, u32, u16)> {
    let seen = match table.get(&0) {
        None => "is empty".to_owned(),
        Some(key) if key & FULL == 0 => format!("is {key:#06x}, a limited member"),
        Some(_) => return None,
    };
    let (index, key) = table.iter().find(|(_, key)| *key & FULL != 0)?;
    Some((seen, *index, *key))
}

fn bond(nic: &Nic) -> Option<Finding> {
    let message = "it is a bond, and one queue pair uses one of its ports: NCCL reaches a part of the bandwidth. Set NCCL_IB_QPS_PER_CONNECTION=2 or more and NCCL_IB_SPLIT_DATA_ON_QPS=0 in the pods";
    nic.bond
        .then(|| FindingId::LagNeedsMultiQp.about(nic.name(), message))
}
