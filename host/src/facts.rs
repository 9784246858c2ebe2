//! Everything that the node agent says of its node, each fact with the file it comes from.
//!
//! Called by the agent's observe step and its `facts` command. Reads only; the modules below are one topic each.

pub mod driver;
pub mod fabric;
pub mod kernel;
pub mod pci_link;
pub mod platform;
pub mod topology_files;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::Machine;
use topology::pci::PciAddress;

use crate::machine::{Options, machine};
use crate::root::Root;

/// A fact and the file that it was looked for in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sourced<T> {
    /// Path below the root.
    pub source: String,
    /// What was found there.
    pub fact: Fact<T>,
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

/// All facts of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// PCIe links of GPUs and NICs.
    pub links: BTreeMap<PciAddress, pci_link::PciLink>,
}

/// Reads every fact below `root`.
#[must_use]
pub fn facts(root: &Root, options: &Options) -> Facts {
    let machine = machine(root, options);
    Facts {
        boot_id: kernel::boot_id(root),
        kernel_release: kernel::release(root),
        os: platform::os_release(root),
        hypervisor: platform::hypervisor(root),
        product: platform::product(root),
        vendor: platform::vendor(root),
        modules: kernel::modules(root),
        peer_memory_symbol: driver::peer_memory_symbol(root),
        peer_memory_clients: driver::peer_memory_clients(root),
        gpu_driver: driver::gpu_driver(root),
        ofed_version: driver::ofed_version(root),
        openib_conf: driver::openib_conf(root),
        nccl_topo_file: topology_files::nccl_topo_file(root),
        topology_files: topology_files::files(root),
        rdma: fabric::rdma_devices(root, &machine),
        netdevs: fabric::netdevs(root, &machine),
        links: pci_link::links(root, &machine),
        machine,
    }
}

#[cfg(test)]
mod tests;
