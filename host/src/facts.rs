//! Everything that the node agent says of its node, each fact with the file it comes from.
//!
//! Called by the agent's observe step and its `facts` command. Reads only; the modules below are one topic each.

pub mod driver;
pub mod fabric;
pub mod install;
pub mod kernel;
pub mod network;
pub mod pci_link;
pub mod platform;
pub mod topology_files;
pub mod tuning;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::Machine;
use topology::pci::PciAddress;

use crate::machine::{Options, machine};
use crate::root::Root;

/// Directory of recorded answers of tools, below the root of a tree whose machine does not run here:
/// `ip -j -d address show > ip-address.json`.
pub const RECORDED: &str = "/run/gpurdma-recorded";

/// A fact and the file that it was looked for in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sourced<T> {
    /// Path below the root.
    pub source: String,
    /// What was found there.
    pub fact: Fact<T>,
}

impl<T> Default for Sourced<T> {
    fn default() -> Self {
        Self::new("nowhere", Fact::default())
    }
}

impl<T> Sourced<T> {
    /// The outcome of reading `source`.
    pub(crate) fn new(source: impl Into<String>, fact: Fact<T>) -> Self {
        Self {
            source: source.into(),
            fact,
        }
    }
}

/// All facts of one machine. One that a file written by an older version does not have was not looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    /// Identity of this boot.
    pub boot_id: Sourced<String>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel_release: Sourced<String>,
    /// Distribution.
    pub os: Sourced<platform::OsRelease>,
    /// Whether the processor says that it is virtual.
    pub hypervisor: Sourced<bool>,
    /// Product name of the machine, from its firmware.
    pub product: Sourced<String>,
    /// Vendor of the machine, from its firmware.
    pub vendor: Sourced<String>,
    /// Loaded kernel modules, by name.
    pub modules: Sourced<Vec<kernel::Module>>,
    /// Modules that are part of the running kernel.
    pub built_in: Sourced<Vec<String>>,
    /// Whether the kernel offers the peer-memory interface of MLNX_OFED and DOCA-OFED.
    pub peer_memory_symbol: Sourced<bool>,
    /// Clients that have registered with that interface.
    pub peer_memory_clients: Sourced<Vec<String>>,
    /// The GPU driver that is loaded.
    pub gpu_driver: Sourced<driver::GpuDriver>,
    /// Version of the installed MLNX_OFED or DOCA-OFED, as text.
    pub ofed_version: Sourced<String>,
    /// `openib.conf`, as it is.
    pub openib_conf: Sourced<String>,
    /// Who would read it.
    pub openibd: driver::Openibd,
    /// What is installed, and what the next boot will run.
    pub install: install::Install,
    /// `NCCL_TOPO_FILE` of `/etc/nccl.conf`.
    pub nccl_topo_file: Sourced<String>,
    /// NCCL topology files that are in use here, with their text.
    pub topology_files: Vec<Sourced<String>>,
    /// What pairing needs.
    pub machine: Machine,
    /// What else is known of each RDMA device, by name.
    pub rdma: BTreeMap<String, fabric::RdmaDevice>,
    /// Network interfaces of RDMA devices, by name.
    pub netdevs: BTreeMap<String, fabric::Netdev>,
    /// Interfaces, addresses, routes, settings of RDMA ports, and what the node itself depends on.
    #[serde(default)]
    pub network: network::Network,
    /// PCIe links of GPUs and NICs.
    pub links: BTreeMap<PciAddress, pci_link::PciLink>,
    /// How the host is set around its NICs, and who uses RDMA.
    #[serde(default)]
    pub tuning: tuning::Tuning,
}

impl Facts {
    /// What the search through the kernel's symbols found, if it would find the same with `modules` in the boot
    /// `boot_id`.
    fn symbol_with(
        &self,
        boot_id: &Sourced<String>,
        modules: &Sourced<Vec<kernel::Module>>,
    ) -> Option<Sourced<bool>> {
        let names = |modules: &Sourced<Vec<kernel::Module>>| {
            let modules = modules.fact.known()?.iter();
            Some(
                modules
                    .map(|module| module.name.clone())
                    .collect::<Vec<_>>(),
            )
        };
        let same = names(&self.modules).is_some() && names(&self.modules) == names(modules);
        let known = same && self.boot_id.fact.known().is_some() && self.boot_id == *boot_id;
        known.then(|| self.peer_memory_symbol.clone())
    }
}

/// Reads every fact below `root`. The kernel's symbols, which are many, are searched again only where the loaded modules
/// are not those of `before`.
/// Tuning is not read here: [`tuning::tuning`] needs the answers of tools, and who has them.
#[must_use]
pub fn facts(root: &Root, options: &Options, before: Option<&Facts>) -> Facts {
    let machine = machine(root, options);
    let kernel_release = kernel::release(root);
    let (boot_id, modules) = (kernel::boot_id(root), kernel::modules(root));
    let symbol = before.and_then(|before| before.symbol_with(&boot_id, &modules));
    Facts {
        boot_id,
        built_in: kernel::built_in(root, kernel_release.fact.known().map(String::as_str)),
        kernel_release,
        os: platform::os_release(root),
        hypervisor: platform::hypervisor(root),
        product: platform::product(root),
        vendor: platform::vendor(root),
        modules,
        peer_memory_symbol: symbol.unwrap_or_else(|| driver::peer_memory_symbol(root)),
        peer_memory_clients: driver::peer_memory_clients(root),
        gpu_driver: driver::gpu_driver(root),
        ofed_version: driver::ofed_version(root),
        openib_conf: driver::openib_conf(root),
        openibd: driver::openibd(root),
        install: install::install_since(root, before.map(|before| &before.install)),
        nccl_topo_file: topology_files::nccl_topo_file(root),
        topology_files: topology_files::files(root),
        rdma: fabric::rdma_devices(root, &machine),
        netdevs: fabric::netdevs(root, &machine),
        network: network::network(root, &machine, options.network),
        links: pci_link::links(root, &machine),
        tuning: tuning::Tuning::default(),
        machine,
    }
}

#[cfg(test)]
mod tests;
