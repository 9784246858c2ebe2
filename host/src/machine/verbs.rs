//! Who a `/dev/infiniband/uverbs<N>` belongs to, and a trace by which a change of the RDMA devices is noticed.
//!
//! The kernel numbers uverbs devices and names RDMA devices in the order in which they come (`ib_uverbs_add_one`,
//! `alloc_name`): a NIC that is unplugged, a driver that is bound anew or modules that are reloaded move both. Follows
//! `Documentation/ABI/stable/sysfs-class-infiniband`, `/sys/class/infiniband_verbs/uverbs<N>/ibdev`. The device plugin
//! calls [`owner`], the agent [`trace`].

use std::collections::BTreeMap;

use topology::fact::Fact;
use topology::pci::PciAddress;

use super::nics::{INFINIBAND, VERBS};
use crate::parse::function_of;
use crate::root::{Root, fact};

/// Directory of the device nodes.
const NODES: &str = "/dev/infiniband";

/// Who a uverbs device belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbsOwner {
    /// RDMA device name.
    pub rdma: Fact<String>,
    /// PCI function; software devices have none.
    pub pci: Fact<PciAddress>,
}

impl VerbsOwner {
    /// Nobody: there is no such uverbs device.
    pub const NOBODY: Self = Self {
        rdma: Fact::Absent,
        pci: Fact::Absent,
    };
}

/// Who `/dev/infiniband/uverbs<number>` belongs to now.
#[must_use]
pub fn owner(root: &Root, number: u32) -> VerbsOwner {
    let path = format!("{VERBS}/uverbs{number}");
    VerbsOwner {
        rdma: root.read(&format!("{path}/ibdev")),
        pci: function_of(root, &format!("{path}/device")),
    }
}

/// Names and inode numbers of the RDMA devices, their uverbs devices and the device nodes of these. An entry that went
/// and came back has its name and another number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaTrace([Fact<BTreeMap<String, u64>>; 3]);

/// The trace now: three directory listings, no more.
#[must_use]
pub fn trace(root: &Root) -> RdmaTrace {
    RdmaTrace([INFINIBAND, VERBS, NODES].map(|path| fact(root.inodes(path))))
}

#[cfg(test)]
mod tests;
