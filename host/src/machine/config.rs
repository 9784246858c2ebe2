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

/// What a composed configuration space says.
#[cfg(feature = "fixture")]
pub(crate) struct Composed {
    pub(crate) vendor: u16,
    pub(crate) device: u16,
    pub(crate) class: u32,
    /// Port type of the PCI Express capability.
    pub(crate) port_type: u8,
    /// Control register of the ports' access control services.
    pub(crate) acs_control: u16,
}

/// A configuration space with a PCI Express capability, as long as an express function's: payloads of 256 bytes, read
/// requests of 512. Root and downstream ports have access control services and a slot of 75 W, endpoints have address
/// translation services, switched off.
#[cfg(feature = "fixture")]
pub(crate) fn compose(composed: &Composed) -> Vec<u8> {
    let Composed {
        vendor,
        device,
        class,
        port_type,
        acs_control,
    } = *composed;
    let mut config = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &vendor.to_le_bytes());
    put(0x02, &device.to_le_bytes());
    put(STATUS, &[0x10]);
    put(0x09, &class.to_le_bytes()[..3]);
    // Header type 1 is a bridge's.
    put(
        0x0e,
        &[u8::from(class >> 16 == 0x06 && class >> 8 & 0xff == 0x04)],
    );
    put(CAPABILITY_POINTER, &[0x40]);
    // A power management capability first, so that readers have to walk.
    put(0x40, &[0x01, 0x60, 0x03, 0x00]);
    let is_port = matches!(port_type, 4 | 6);
    put(
        0x60,
        &[PCI_EXPRESS, 0x00, port_type << 4 | 0x02, u8::from(is_port)],
    );
    put(0x68, &(1_u16 << 5 | 2 << 12).to_le_bytes());
    // An extended capability that nobody asks for comes first; it holds nothing.
    put(0x100, &[0x0b, 0x00, 0x01, 0x15]);
    if is_port {
        put(0x74, &(75_u32 << 7).to_le_bytes());
        put(0x150, &[0x0d, 0x00, 0x01, 0x00, 0x5f, 0x00]);
        put(0x156, &acs_control.to_le_bytes());
    } else if port_type == 0 {
        put(0x150, &[0x0f, 0x00, 0x01, 0x00]);
    }
    config
}

#[cfg(test)]
mod tests;
