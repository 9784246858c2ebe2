//! Carries out and verifies changes of RDMA ports and network interfaces: `ip` and `dcb` of the agent's own image in the
//! host's network namespace, and attributes of sysfs and configfs below the root. Called by [`super`] only.

mod commands;
mod seen;

use std::ffi::OsStr;
use std::time::Duration;

use host::facts::network::{self, CONFIGFS, is_live};
use host::root::Root;

use super::{ExecuteError, judge};
use crate::action::{FabricChange, RdmaPort, roce_mode};
use crate::settings::Settings;
use crate::store::write_attribute;
use host::program;

/// How long a tool may take. Longer than it, the action and its way back together stay below a minute.
const DEADLINE: Duration = Duration::from_secs(10);

/// Makes the change; the caller verifies it.
pub(super) fn perform(settings: &Settings, change: &FabricChange) -> Result<(), ExecuteError> {
    let root = &settings.root;
    if !is_live(root) {
        let why = "this process is not in the network namespace of the host below --root: it would change another machine's interfaces";
        return Err(refused(change, why));
    }
    same_interface(root, change)?;
    if let FabricChange::Dscp {
        netdev,
        dscp,
        priority: None,
    } = change
    {
        // The tool takes an entry away by both its halves.
        return match network::dcb(root, &netdev.name).dscp.fact.known() {
            Some(map) => match map.get(dscp) {
                Some(priority) => run(
                    settings,
                    change,
                    &commands::without_dscp(&netdev.name, *dscp, *priority),
                ),
                None => Ok(()),
            },
            None => Ok(()),
        };
    }
    match commands::command(change) {
        Some(command) => run(settings, change, &command),
        None => write(root, change),
    }
}

fn run(
    settings: &Settings,
    change: &FabricChange,
    (program, arguments): &commands::Command,
) -> Result<(), ExecuteError> {
    let borrowed: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    let outcome = program::run(OsStr::new(program), &borrowed, DEADLINE)?;
    let what = format!("{program} {}", arguments.join(" "));
    judge(&what, outcome, verify(settings, change))
}

/// The plan was about one interface; another one may have its name by now.
fn same_interface(root: &Root, change: &FabricChange) -> Result<(), ExecuteError> {
    let netdev = change.netdev();
    match seen::link(root, &netdev.name) {
        Ok(link) if link.index == netdev.index => Ok(()),
        Ok(link) => {
            let why = format!(
                "it was made anew since the plan: its index is {}, and was {}",
                link.index, netdev.index
            );
            Err(refused(change, why))
        }
        Err(seen) => Err(refused(change, seen)),
    }
}

fn refused(change: &FabricChange, why: impl Into<String>) -> ExecuteError {
    ExecuteError::Refused {
        what: change.netdev().name.clone(),
        why: why.into(),
    }
}

/// What is a file and not a tool's.
fn write(root: &Root, change: &FabricChange) -> Result<(), ExecuteError> {
    let (path, text) = match change {
        FabricChange::Trust { netdev, dscp } => {
            let text = if *dscp { "dscp" } else { "pcp" };
            (
                format!("/sys/class/net/{netdev}/qos/trust"),
                text.to_owned(),
            )
        }
        FabricChange::Ecn {
            netdev,
            side,
            priority,
            on,
        } => {
            let directory = side.directory();
            let path = format!("/sys/class/net/{netdev}/ecn/{directory}/enable/{priority}");
            (path, u8::from(*on).to_string())
        }
        FabricChange::RoceMode { port, v2 } => (
            configured(root, port, "default_roce_mode")?,
            roce_mode(*v2).to_owned(),
        ),
        FabricChange::Tos { port, tos } => {
            (configured(root, port, "default_roce_tos")?, tos.to_string())
        }
        FabricChange::TrafficClass { port, class } => (
            format!(
                "/sys/class/infiniband/{}/tc/{}/traffic_class",
                port.device, port.port
            ),
            class.to_string(),
        ),
        // Every other change is a tool's.
        _ => return Ok(()),
    };
    Ok(write_attribute(root, &path, &text)?)
}

/// RDMA-CM shows a device's settings once its directory is made; it stays, so that they can be read.
fn configured(root: &Root, port: &RdmaPort, file: &str) -> Result<String, ExecuteError> {
    let directory = format!("{CONFIGFS}/{}", port.device);
    root.create_dir_all(&directory)
        .map_err(crate::store::StoreError::from)?;
    Ok(format!("{directory}/ports/{}/{file}", port.port))
}

/// Reads again whether the change has its effect; the error says what is there instead.
pub(super) fn verify(settings: &Settings, change: &FabricChange) -> Result<(), String> {
    seen::verify(&settings.root, change)
}

#[cfg(test)]
mod tests;
