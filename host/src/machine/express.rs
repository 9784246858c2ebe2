//! Settings in the PCI Express capability and in extended capabilities of a configuration space: device control, slot
//! power, access control services (ACS), address translation services (ATS). Pure; the facts read by it, and the agent finds
//! by it what to write.
//!
//! PCI Express Base 5.0: 7.5.3.3 to 7.5.3.9 (device and slot registers), 7.6 (extended capabilities), 7.7.8 (ACS), 10.5.1
//! (ATS). Extended capabilities start at byte 256; who may read less knows nothing about them.

/// Id of the PCI Express capability.
const PCI_EXPRESS: u8 = 0x10;
/// Where extended capabilities start.
const EXTENDED: usize = 0x100;
/// Id of the ACS capability.
const ACS: u16 = 0x000d;
/// Id of the ATS capability.
const ATS: u16 = 0x000f;
/// More than the extended space can hold: a list with a cycle.
const MAX_CAPABILITIES: usize = 480;
/// Length of an express function's space.
pub const CONFIG_LENGTH: u64 = 4096;

/// The bytes that would tell are not readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{got} of 4096 bytes are readable: reading more needs root, and shows on express functions only"
)]
pub struct Hidden {
    /// How many bytes there are.
    pub got: usize,
}

/// A 16-bit register and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Offset in the configuration space.
    pub offset: usize,
    /// Its value.
    pub value: u16,
}

/// ACS of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acs {
    /// What the port can do.
    pub capability: u16,
    /// What is switched on.
    pub control: Register,
}

/// The ACS capability; `None` where the function has none.
pub fn acs(config: &[u8]) -> Result<Option<Acs>, Hidden> {
    let read = |at: usize| {
        let capability = word(config, at + 4)?;
        let control = register(config, at + 6)?;
        Some(Acs {
            capability,
            control,
        })
    };
    extended(config, ACS).map(|found| found.and_then(read))
}

/// The ATS control register, whose bit 15 enables it; `None` where the function has no ATS.
pub fn ats_control(config: &[u8]) -> Result<Option<Register>, Hidden> {
    extended(config, ATS).map(|found| found.and_then(|at| register(config, at + 6)))
}

/// The device control register; `None` where the function has no PCI Express capability.
pub fn device_control(config: &[u8]) -> Result<Option<Register>, Hidden> {
    express(config).map(|found| found.and_then(|at| register(config, at + 8)))
}

/// Watts that the slot behind this port may draw; `None` where the port has no slot.
pub fn slot_power_milliwatts(config: &[u8]) -> Result<Option<u32>, Hidden> {
    let Some(at) = express(config)? else {
        return Ok(None);
    };
    let has_slot = word(config, at + 2).is_some_and(|flags| flags & 0x0100 != 0);
    let slot = (word(config, at + 0x14), word(config, at + 0x16));
    let (Some(low), Some(high), true) = (slot.0, slot.1, has_slot) else {
        return Ok(None);
    };
    let slot = u32::from(high) << 16 | u32::from(low);
    Ok(slot_power(slot >> 7 & 0xff, slot >> 15 & 0x3))
}

/// Values from 0xf0 on are names for large loads, of which only the first three are settled.
fn slot_power(value: u32, scale: u32) -> Option<u32> {
    match (value, scale) {
        (0, _) | (0xf3.., 0) => None,
        (0xf0, 0) => Some(250_000),
        (0xf1, 0) => Some(275_000),
        (0xf2, 0) => Some(300_000),
        (value, scale) => Some(value * 1000 / 10_u32.pow(scale)),
    }
}

/// Bytes of a maximum payload (bits 7:5) or maximum read request (bits 14:12) field; two of its values are reserved.
#[must_use]
pub fn size(field: u16) -> Option<u32> {
    (field <= 5).then(|| 128 << field)
}

/// The field for a size; `None` for a size that PCI Express does not have.
#[must_use]
pub fn size_field(bytes: u32) -> Option<u16> {
    (0..=5).find(|field| size(*field) == Some(bytes))
}

/// Offset of the PCI Express capability.
fn express(config: &[u8]) -> Result<Option<usize>, Hidden> {
    if config.len() <= 64 {
        return Err(Hidden { got: config.len() });
    }
    let has_list = config[0x06] & 0x10 != 0;
    let mut at = if has_list {
        usize::from(config[0x34] & 0xfc)
    } else {
        0
    };
    for _ in 0..MAX_CAPABILITIES {
        let Some(header) = config.get(at..at + 2).filter(|_| at >= 64) else {
            break;
        };
        if header[0] == PCI_EXPRESS {
            return Ok(Some(at));
        }
        at = usize::from(header[1] & 0xfc);
    }
    Ok(None)
}

/// Offset of an extended capability. All ones or zeros at the start mean that there is none at all.
fn extended(config: &[u8], wanted: u16) -> Result<Option<usize>, Hidden> {
    if config.len() <= EXTENDED {
        return Err(Hidden { got: config.len() });
    }
    let mut at = EXTENDED;
    for _ in 0..MAX_CAPABILITIES {
        let (Some(id), Some(next)) = (word(config, at), word(config, at + 2)) else {
            break;
        };
        if id == wanted {
            return Ok(Some(at));
        }
        at = usize::from(next >> 4 & 0xffc);
        if at < EXTENDED || id == 0xffff {
            break;
        }
    }
    Ok(None)
}

/// The space with no more of its extended part than ACS and ATS, where they were: others hold serial numbers. A space that
/// was cut stays cut.
#[cfg(feature = "fixture")]
pub(crate) fn without_identity(config: &[u8]) -> Vec<u8> {
    let mut kept = config[..config.len().min(EXTENDED)].to_vec();
    if config.len() <= EXTENDED {
        return kept;
    }
    kept.resize(config.len(), 0);
    let found = [ACS, ATS].map(|id| extended(config, id).ok().flatten());
    let mut places: Vec<usize> = found.into_iter().flatten().collect();
    places.sort_unstable();
    for at in &places {
        let whole = config.get(*at..at + 8).unwrap_or_default();
        kept[*at..at + whole.len()].copy_from_slice(whole);
    }
    // The list starts at its first place, with an empty capability where none of the two lies.
    let mut from = EXTENDED;
    for to in places.iter().filter(|at| **at != EXTENDED).chain([&0]) {
        let next = u16::try_from(*to << 4).unwrap_or(0) | 1;
        if let Some(header) = kept.get_mut(from + 2..from + 4) {
            header.copy_from_slice(&next.to_le_bytes());
        }
        from = *to;
    }
    kept
}

fn register(config: &[u8], offset: usize) -> Option<Register> {
    word(config, offset).map(|value| Register { offset, value })
}

fn word(config: &[u8], at: usize) -> Option<u16> {
    let bytes = config.get(at..at + 2)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests;
