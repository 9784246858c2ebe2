//! Carries out and verifies changes of the host around the NICs: PCIe, firmware, firewall, RDMA namespaces. Called by [`super`] only.

mod firewall;
mod pci;

use std::time::Duration;

use host::facts::tuning::firmware::{self, Setting};
use topology::pci::PciAddress;

use super::ExecuteError;
use crate::action::{LinkType, NETNS_FILE, TuningChange, redirects};
use crate::gather::chain;
use crate::host_state::HostState;
use crate::settings::Settings;
use crate::store::{read_text, replace_host_file};
use crate::tools::Tools;

/// How long writing a setting into firmware may take.
const FIRMWARE: Duration = Duration::from_mins(1);

/// Makes the change; the caller verifies it.
pub(super) fn perform(
    settings: &Settings,
    state: &HostState,
    change: &TuningChange,
) -> Result<(), ExecuteError> {
    match change {
        TuningChange::AcsRedirects { port, bits } => {
            pci::still_free(settings, state, *port)?;
            pci::set_redirects(settings, *port, *bits)
        }
        TuningChange::MaxReadRequest { function, bytes } => {
            pci::set_read_request(settings, *function, *bytes)
        }
        TuningChange::RdmaNetns {
            shared: Some(shared),
        } => {
            let root = &settings.root;
            root.create_dir_all("/etc/modprobe.d")
                .map_err(crate::store::StoreError::from)?;
            Ok(replace_host_file(root, NETNS_FILE, &option_file(*shared))?)
        }
        TuningChange::RdmaNetns { shared: None } => {
            let removed = settings.root.remove(NETNS_FILE);
            Ok(removed.map_err(crate::store::StoreError::from)?)
        }
        // What waits for its reboot stays planned; firmware is not written again for it.
        TuningChange::LinkType { .. } if verify(settings, change).is_ok() => Ok(()),
        TuningChange::LinkType {
            function,
            port,
            link,
        } => set_link_type(settings, *function, *port, *link),
        TuningChange::Firewall { via, opening, open } => {
            firewall::set(settings, via, opening, *open)
        }
    }
}

/// Reads again whether the change has its effect; the error says what is there instead.
pub(super) fn verify(settings: &Settings, change: &TuningChange) -> Result<(), String> {
    match change {
        TuningChange::AcsRedirects { port, bits } => {
            let seen = pci::redirects_of(settings, *port)?;
            differs(seen == *bits, || format!("{port} has {}", redirects(seen)))
        }
        TuningChange::MaxReadRequest { function, bytes } => {
            let seen = pci::read_request_of(settings, *function)?;
            differs(seen == Some(*bytes), || match seen {
                Some(seen) => format!("{function} has {seen}"),
                None => format!("{function} has a reserved size"),
            })
        }
        TuningChange::RdmaNetns { shared } => {
            let text = read_text(&settings.root, NETNS_FILE).map_err(|error| error.chain())?;
            let wanted = shared.map(option_file);
            differs(text == wanted, || match &text {
                Some(text) => format!("{NETNS_FILE} holds `{}`", text.trim()),
                None => format!("there is no {NETNS_FILE}"),
            })
        }
        TuningChange::LinkType {
            function,
            port,
            link,
        } => {
            let seen = next_link_type(settings, *function, *port)?;
            differs(Setting::number(&seen) == Some(link.number()), || {
                format!("LINK_TYPE_P{port} of {function} will be {seen}")
            })
        }
        TuningChange::Firewall { via, opening, open } => {
            firewall::verify(settings, via, opening, *open)
        }
    }
}

fn differs(as_wanted: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if as_wanted { Ok(()) } else { Err(seen()) }
}

fn option_file(shared: bool) -> String {
    format!(
        "# Written by gpu-rdma-operator (tuning.rdmaNetns); in effect when ib_core is loaded.\noptions ib_core netns_mode={}\n",
        u8::from(shared)
    )
}

fn set_link_type(
    settings: &Settings,
    function: PciAddress,
    port: u8,
    link: LinkType,
) -> Result<(), ExecuteError> {
    let address = function.to_string();
    let setting = format!("LINK_TYPE_P{port}={}", link.number());
    let arguments = ["-y", "-d", address.as_str(), "set", setting.as_str()];
    Tools::new(settings).ask("mstconfig", &arguments, FIRMWARE)?;
    Ok(())
}

fn next_link_type(settings: &Settings, function: PciAddress, port: u8) -> Result<String, String> {
    let (address, name) = (function.to_string(), format!("LINK_TYPE_P{port}"));
    let arguments = ["-e", "-d", address.as_str(), "query", name.as_str()];
    let answer = Tools::new(settings)
        .ask("mstconfig", &arguments, FIRMWARE)
        .map_err(|error| chain(&error))?;
    let found = firmware::parse(&answer).and_then(|mut settings| settings.remove(&name));
    found
        .map(|setting| setting.next)
        .ok_or_else(|| format!("mstconfig shows no {name} of {function}"))
}

#[cfg(test)]
mod tests;
