//! Who a `/dev/infiniband/uverbs<N>` belongs to.
//!
//! The kernel numbers uverbs devices and names RDMA devices in the order in which they come (`ib_uverbs_add_one`,
//! `alloc_name`): a NIC that is unplugged, a driver that is bound anew or modules that are reloaded move both. Follows
//! `Documentation/ABI/stable/sysfs-class-infiniband`, `/sys/class/infiniband_verbs/uverbs<N>/ibdev`. The device plugin
//! calls [`owner`].

use topology::fact::Fact;
use topology::pci::PciAddress;

use super::nics::VERBS;
use crate::parse::function_of;
use crate::root::Root;

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

#[cfg(test)]
mod tests;
