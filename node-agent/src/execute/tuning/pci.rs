//! Registers in configuration spaces, through the `config` file of sysfs: read, changed, written as one 16-bit register, and
//! read back by the caller. All other bits of a register stay.

use host::facts::tuning::pcie::{REDIRECTS, above, passed_through};
use host::machine::express::{CONFIG_LENGTH, Register, acs, device_control, size, size_field};
use topology::fact::Fact;
use topology::pci::PciAddress;

use super::super::ExecuteError;
use crate::host_state::HostState;
use crate::settings::Settings;
use crate::store::{StoreError, write_at};

fn path(pci: PciAddress) -> String {
    format!("/sys/bus/pci/devices/{pci}/config")
}

fn config(settings: &Settings, pci: PciAddress) -> Result<Vec<u8>, String> {
    let bytes = settings.root.bytes_up_to(&path(pci), CONFIG_LENGTH);
    bytes.map_err(|error| error.chain())
}

fn refused(what: &impl ToString, why: &impl ToString) -> ExecuteError {
    ExecuteError::Refused {
        what: what.to_string(),
        why: why.to_string(),
    }
}

/// A guest may have been given a device since the plan was made.
pub(super) fn still_free(
    settings: &Settings,
    state: &HostState,
    port: PciAddress,
) -> Result<(), ExecuteError> {
    let held = match passed_through(&settings.root) {
        Fact::Known(held) => held,
        Fact::Absent => return Ok(()),
        Fact::Unreadable(why) => return Err(refused(&port, &why)),
    };
    let machine = &state.facts.machine;
    let behind = |pci: &&PciAddress| above(machine, **pci).contains(&port);
    match held.keys().find(behind) {
        Some(pci) => Err(refused(
            &port,
            &format!("{pci} behind it belongs to {}", held[pci]),
        )),
        None => Ok(()),
    }
}

fn write(
    settings: &Settings,
    pci: PciAddress,
    register: Register,
    value: u16,
) -> Result<(), ExecuteError> {
    match write_at(
        &settings.root,
        &path(pci),
        register.offset as u64,
        &value.to_le_bytes(),
    ) {
        Ok(()) => Ok(()),
        // What the kernel refuses is the action's failure, not the agent's.
        Err(StoreError::Io { source, .. }) => {
            Err(refused(&format!("write config of {pci}"), &source))
        }
        Err(error) => Err(error.into()),
    }
}

/// Sets the redirecting bits that the port can have to `bits`.
pub(super) fn set_redirects(
    settings: &Settings,
    port: PciAddress,
    bits: u16,
) -> Result<(), ExecuteError> {
    let space = config(settings, port).map_err(|why| refused(&port, &why))?;
    let found = acs(&space).map_err(|hidden| refused(&port, &hidden))?;
    let found = found.ok_or_else(|| refused(&port, &"it has no access control services"))?;
    let value = (found.control.value & !REDIRECTS) | (bits & REDIRECTS & found.capability);
    write(settings, port, found.control, value)
}

pub(super) fn redirects_of(settings: &Settings, port: PciAddress) -> Result<u16, String> {
    let found = acs(&config(settings, port)?).map_err(|hidden| hidden.to_string())?;
    Ok(found.map_or(0, |acs| acs.control.value & REDIRECTS))
}

/// Sets bits 14:12 of the device control register.
pub(super) fn set_read_request(
    settings: &Settings,
    function: PciAddress,
    bytes: u32,
) -> Result<(), ExecuteError> {
    let field = size_field(bytes)
        .ok_or_else(|| refused(&function, &format!("{bytes} is no size of PCI Express")))?;
    let space = config(settings, function).map_err(|why| refused(&function, &why))?;
    let found = device_control(&space).map_err(|hidden| refused(&function, &hidden))?;
    let register = found.ok_or_else(|| refused(&function, &"it is no PCI Express function"))?;
    write(
        settings,
        function,
        register,
        (register.value & !(0x7 << 12)) | field << 12,
    )
}

/// `None` for a reserved value.
pub(super) fn read_request_of(
    settings: &Settings,
    function: PciAddress,
) -> Result<Option<u32>, String> {
    let found =
        device_control(&config(settings, function)?).map_err(|hidden| hidden.to_string())?;
    let register = found.ok_or_else(|| format!("{function} is no PCI Express function"))?;
    Ok(size(register.value >> 12 & 0x7))
}
