//! Product generation of a NIC's card by its PCI device id. Pure. The ids are those that rdma-core's mlx5 provider knows
//! (`providers/mlx5/mlx5.c`). A virtual function of a later card bears one common id: its physical function tells.

use std::collections::BTreeMap;

use topology::fact::Fact;
use topology::machine::{Machine, Nic};
use topology::pci::PciAddress;

const MELLANOX: u16 = 0x15b3;

/// Device id → generation.
const GENERATIONS: &[(u16, &str)] = &[
    (0x1011, "Connect-IB"),
    (0x1012, "Connect-IB"),
    (0x1013, "ConnectX-4"),
    (0x1014, "ConnectX-4"),
    (0x1015, "ConnectX-4 Lx"),
    (0x1016, "ConnectX-4 Lx"),
    (0x1017, "ConnectX-5"),
    (0x1018, "ConnectX-5"),
    (0x1019, "ConnectX-5 Ex"),
    (0x101a, "ConnectX-5 Ex"),
    (0x101b, "ConnectX-6"),
    (0x101c, "ConnectX-6"),
    (0x101d, "ConnectX-6 Dx"),
    (0x101f, "ConnectX-6 Lx"),
    (0x1021, "ConnectX-7"),
    (0x1023, "ConnectX-8"),
    (0x1025, "ConnectX-9"),
    (0x1027, "ConnectX-10"),
    (0x2100, "ConnectX-8 (data direct)"),
    (0x2101, "ConnectX-10"),
    (0xa2d2, "BlueField"),
    (0xa2d3, "BlueField"),
    (0xa2d6, "BlueField-2"),
    (0xa2dc, "BlueField-3"),
    (0xa2df, "BlueField-4"),
];

/// Generation of every NIC of this vendor.
pub(crate) fn read(machine: &Machine) -> BTreeMap<PciAddress, Fact<String>> {
    let of = |nic: &Nic| Some((nic.pci?, generation(machine, nic)?));
    machine.nics.iter().filter_map(of).collect()
}

/// `None` for a card of another vendor.
fn generation(machine: &Machine, nic: &Nic) -> Option<Fact<String>> {
    let (vendor, own) = *nic.ids.known()?;
    if vendor != MELLANOX {
        return None;
    }
    let of_card = nic.physfn.and_then(|pci| machine.functions.get(&pci));
    let id = of_card
        .and_then(|function| function.device.known().copied())
        .unwrap_or(own);
    let known = GENERATIONS.iter().find(|(device, _)| *device == id);
    Some(known.map_or_else(
        || {
            Fact::Unreadable(format!(
                "{MELLANOX:04x}:{id:04x} is not in this version's table"
            ))
        },
        |(_, name)| Fact::Known((*name).to_owned()),
    ))
}
