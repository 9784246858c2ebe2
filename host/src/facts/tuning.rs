//! How the host is set around its NICs: PCIe, RDMA network namespaces, firewall, locked memory, firmware, and who uses RDMA
//! now. Read, not judged.
//!
//! Files are read here. What only a tool can tell (`nft`, `rdma`, `firewall-cmd`, `mstconfig`) comes as [`ToolAnswers`]:
//! the agent asks the tools on a live machine, a captured tree carries recorded answers.

pub mod answers;
pub mod firewall;
pub mod firmware;
pub mod generation;
pub mod memlock;
pub mod namespaces;
pub mod pcie;
pub mod users;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::Machine;
use topology::pci::PciAddress;

use crate::facts::platform;
use crate::machine::nics::INFINIBAND;
use crate::parse::checked;
use crate::root::{Root, fact};

pub use answers::ToolAnswers;

/// The kernel's lockdown mode (`Documentation/ABI/testing/securityfs` has none; `security/lockdown/lockdown.c`).
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Which parts are read: some take long, and are needed only where something is asked of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Configuration spaces of GPUs, NICs and the ports above them.
    pub pcie: bool,
    /// Firewall rules.
    pub firewall: bool,
    /// Who uses RDMA: every process is looked at.
    pub users: bool,
}

impl Scope {
    /// Everything.
    pub const ALL: Self = Self {
        pcie: true,
        firewall: true,
        users: true,
    };
}

/// How the host is set around its NICs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tuning {
    /// PCIe settings of GPUs, NICs and the ports above them.
    pub pcie: BTreeMap<PciAddress, pcie::PcieFunction>,
    /// Functions that a hypervisor's driver holds, with that driver.
    pub passed_through: Fact<BTreeMap<PciAddress, String>>,
    /// The kernel's lockdown mode: `none`, `integrity`, `confidentiality`; `Absent` in a kernel without it.
    pub lockdown: Fact<String>,
    /// Whether the processor says that it is virtual.
    pub hypervisor: Fact<bool>,
    /// How RDMA devices and network namespaces go together.
    pub rdma_netns: namespaces::RdmaNetns,
    /// Who filters packets, and what.
    pub firewall: firewall::Firewall,
    /// RDMA devices that are software over a network interface: their packets pass the host's firewall.
    pub soft_roce: Vec<String>,
    /// Locked-memory limits that container runtimes hand on, by unit.
    pub runtimes: BTreeMap<String, memlock::Runtime>,
    /// Product generation of each NIC's card.
    pub generations: BTreeMap<PciAddress, Fact<String>>,
    /// Settings in the firmware of NICs.
    pub firmware: BTreeMap<PciAddress, Fact<firmware::Settings>>,
    /// Who uses RDMA now.
    pub users: users::RdmaUsers,
}

/// Reads what `scope` names and everything that costs little.
#[must_use]
pub fn tuning(root: &Root, machine: &Machine, answers: &ToolAnswers, scope: Scope) -> Tuning {
    let pcie = if scope.pcie {
        pcie::read(root, machine)
    } else {
        BTreeMap::new()
    };
    let firewall = if scope.firewall {
        firewall::read(root, answers)
    } else {
        firewall::Firewall::default()
    };
    let users = if scope.users {
        users::read(root, answers)
    } else {
        users::RdmaUsers::default()
    };
    Tuning {
        pcie,
        passed_through: pcie::passed_through(root),
        lockdown: checked(root.read(LOCKDOWN), LOCKDOWN, "lockdown mode", lockdown),
        hypervisor: platform::hypervisor(root).fact,
        rdma_netns: namespaces::read(root),
        firewall,
        soft_roce: soft_roce(root, machine),
        runtimes: memlock::read(root),
        generations: generation::read(machine),
        firmware: firmware::read(answers),
        users,
    }
}

/// `none [integrity] confidentiality`: the word in brackets is in force.
fn lockdown(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(mode, _)| mode.to_owned())
}

/// A device of software lives below `/sys/devices/virtual`.
fn soft_roce(root: &Root, machine: &Machine) -> Vec<String> {
    let is_software = |name: &String| {
        let path = fact(root.resolve(&format!("{INFINIBAND}/{name}")));
        path.known()
            .is_some_and(|path| path.starts_with("/sys/devices/virtual/"))
    };
    let names = machine.nics.iter().filter_map(|nic| nic.rdma.clone());
    names.filter(is_software).collect()
}

#[cfg(test)]
mod tests;
