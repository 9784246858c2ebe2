//! Port type from the PCI Express capability in a function's configuration space. Pure.
//!
//! PCI Local Bus 3.0, 6.1 and 6.7 (header, capability list); PCI Express Base 5.0, 7.5.3.2 (capability register). Without
//! `CAP_SYS_ADMIN` the kernel shows the first 64 bytes only (`drivers/pci/pci-sysfs.c`), which holds no capability.

/// Offset of the status register, whose bit 4 says that there is a capability list.
const STATUS: usize = 0x06;
/// Offset of the pointer to the first capability.
const CAPABILITY_POINTER: usize = 0x34;
/// Id of the PCI Express capability.
const PCI_EXPRESS: u8 = 0x10;
/// More entries than 192 bytes can hold: a list with a cycle.
const MAX_CAPABILITIES: usize = 48;

/// What the configuration space says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortType {
    /// Device/port type of the PCI Express capability.
    Express(u8),
    /// The whole space is there, without a PCI Express capability.
    Conventional,
    /// Too little of it is readable.
    Hidden,
}

/// Walks the capability list.
pub(crate) fn port_type(config: &[u8]) -> PortType {
    if config.len() <= 64 {
        return PortType::Hidden;
    }
    let has_list = config[STATUS] & 0x10 != 0;
    let mut at = if has_list {
        usize::from(config[CAPABILITY_POINTER] & 0xfc)
    } else {
        0
    };
    for _ in 0..MAX_CAPABILITIES {
        let Some(header) = config.get(at..at + 4).filter(|_| at >= 64) else {
            break;
        };
        if header[0] == PCI_EXPRESS {
            return PortType::Express(header[2] >> 4);
        }
        at = usize::from(header[1] & 0xfc);
    }
    PortType::Conventional
}

/// A configuration space with a PCI Express capability of that port type, as long as an express function's.
#[cfg(feature = "fixture")]
pub(crate) fn compose(vendor: u16, device: u16, class: u32, port_type: u8) -> Vec<u8> {
    let mut config = vec![0; 4096];
    config[0x00..0x02].copy_from_slice(&vendor.to_le_bytes());
    config[0x02..0x04].copy_from_slice(&device.to_le_bytes());
    config[STATUS] = 0x10;
    config[0x09..0x0c].copy_from_slice(&class.to_le_bytes()[..3]);
    // Header type 1 is a bridge's.
    config[0x0e] = u8::from(class >> 16 == 0x06 && class >> 8 & 0xff == 0x04);
    config[CAPABILITY_POINTER] = 0x40;
    // A power management capability first, so that readers have to walk.
    config[0x40..0x44].copy_from_slice(&[0x01, 0x60, 0x03, 0x00]);
    config[0x60..0x64].copy_from_slice(&[PCI_EXPRESS, 0x00, port_type << 4 | 0x02, 0x00]);
    config
}

#[cfg(test)]
mod tests;
