//! Writes the `/sys` and `/proc` of a machine that is only described: tests, simulated nodes, the demo.
//!
//! The tree is laid out as the kernel lays it out, links included, so that [`crate::machine`] and the field's own tools
//! read it by their usual way. A description leaves out what no kernel leaves out (names, bus numbers, port states);
//! [`as_seen`] says what was put in its place, and is exactly what a reader of the tree sees.

mod identity;
mod pci;
mod places;
mod rdma;
mod seen;
mod system;

use topology::machine::Machine;
use topology::pci::PciAddress;

use crate::facts::driver::{Flavour, GpuDriver};
use crate::machine::Options;
use crate::root::{Root, RootError};

pub use seen::as_seen;

/// What a description of hardware does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixtureOptions {
    /// Name of the machine: invented identities (UUIDs, GUIDs, MAC addresses, boot id) follow from it.
    pub name: String,
    /// What the reader counts as a GPU.
    pub reader: Options,
    /// How much of the configuration space a reader gets.
    pub config: ConfigSpace,
    /// Access control services of root and downstream ports: the control register (PCI Express Base 5.0, 7.7.8.3).
    pub acs_control: u16,
    /// The loaded GPU driver; without one, GPUs have no UUID and no minor.
    pub gpu_driver: Option<GpuDriver>,
    /// Loaded kernel modules.
    pub modules: Vec<FixtureModule>,
    /// Whether the kernel offers MLNX_OFED's peer-memory interface.
    pub peer_memory: bool,
    /// `uname -r`.
    pub kernel_release: String,
}

impl Default for FixtureOptions {
    fn default() -> Self {
        Self {
            name: "fixture".to_owned(),
            reader: Options::default(),
            config: ConfigSpace::Full,
            acs_control: 0,
            gpu_driver: Some(GpuDriver {
                version: "570.86.15".to_owned(),
                flavour: Flavour::Open,
            }),
            modules: Vec::new(),
            peer_memory: false,
            kernel_release: "6.8.0-60-generic".to_owned(),
        }
    }
}

/// How much of the configuration space a reader gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSpace {
    /// 4096 bytes with PCI Express, ACS and ATS capabilities, as root reads it.
    Full,
    /// The first 64 bytes, as everybody else reads it.
    Header,
    /// No `config` file.
    Absent,
}

/// A loaded kernel module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixtureModule {
    /// Name, with underscores.
    pub name: String,
    /// Modules that use it; its reference count is their number.
    pub holders: Vec<String>,
    /// `MODULE_VERSION`.
    pub version: Option<String>,
    /// Checksum of its sources.
    pub source_version: Option<String>,
}

/// Why a description cannot be written as a tree.
#[derive(Debug, thiserror::Error)]
pub enum FixtureError {
    /// A parent that is no function of the machine.
    #[error(
        "functions: {function} has the parent {bridge}, which is not described; add it or give a host bridge"
    )]
    MissingBridge {
        /// The function.
        function: PciAddress,
        /// Its parent.
        bridge: PciAddress,
    },
    /// A function above itself.
    #[error(
        "functions: {function} stands above itself; let its chain of parents end at a host bridge"
    )]
    Cycle {
        /// The function.
        function: PciAddress,
    },
    /// A name that no file can have.
    #[error(
        "{field}: `{value}` cannot be the name of a device; write letters, digits, `_`, `-` and `.`"
    )]
    Name {
        /// Where the name stands.
        field: String,
        /// The name.
        value: String,
    },
    /// Two RDMA devices of one name.
    #[error("nics: the name {name} occurs twice; each RDMA device has its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The tree cannot be written.
    #[error("fixture tree")]
    Write(#[from] RootError),
}

/// Writes the tree of `machine` below `into` and returns the machine that a reader of it sees. `etc` is left alone.
pub fn write(
    machine: &Machine,
    options: &FixtureOptions,
    into: &Root,
) -> Result<Machine, FixtureError> {
    let seen = as_seen(machine, options)?;
    pci::write(&seen, options, into)?;
    rdma::write(&seen, options, into)?;
    system::write(&seen, options, into)?;
    Ok(seen)
}

#[cfg(test)]
mod tests;
