//! Whether one RDMA device stands for several ports of a card (RoCE LAG, kernel `drivers/net/ethernet/mellanox/mlx5/core/lag`).
//!
//! In LAG the driver keeps one RDMA device, on the first function, named `mlx5_bond_<N>` unless udev renames it. Then the
//! bond of its network interface tells: another member sits on the same card and has no RDMA device of its own.

use std::collections::BTreeSet;

use topology::machine::Nic;
use topology::pci::PciAddress;

use super::nics::NET;
use crate::parse::function_of;
use crate::root::Root;

/// Whether `nic` is such a device; `with_rdma` are the functions that have an RDMA device.
pub(crate) fn is_bond(root: &Root, nic: &Nic, with_rdma: &BTreeSet<PciAddress>) -> bool {
    let named = nic
        .rdma
        .as_deref()
        .is_some_and(|name| name.contains("_bond_"));
    let Some(own) = nic.pci else { return named };
    named
        || nic
            .netdevs
            .iter()
            .flat_map(|netdev| members(root, netdev))
            .any(|other| {
                other != own
                    && other.with_function(0) == own.with_function(0)
                    && !with_rdma.contains(&other)
            })
}

/// Functions of every member of the bond that a network interface is in.
fn members(root: &Root, netdev: &str) -> Vec<PciAddress> {
    let slaves = root
        .text(&format!("{NET}/{netdev}/master/bonding/slaves"))
        .unwrap_or_default();
    let functions = slaves
        .split_whitespace()
        .map(|slave| function_of(root, &format!("{NET}/{slave}/device")));
    functions
        .filter_map(|function| function.known().copied())
        .collect()
}
