//! Who a `/dev/infiniband/uverbs<N>` belongs to.
//!
//! The kernel numbers uverbs devices and names RDMA devices in the order in which they come (`ib_uverbs_add_one`,
//! `alloc_name`): a NIC that is unplugged, a driver that is bound anew or modules that are reloaded move both. Follows
//! `Documentation/ABI/stable/sysfs-class-infiniband`, `/sys/class/infiniband_verbs/uverbs<N>/ibdev`. The device plugin
//! calls [`owner`], and [`Held::owner`] where it asks often.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

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

/// A uverbs device whose `ibdev` stays open: one read tells its owner, where [`owner`] takes eight system calls and follows
/// two long paths.
///
/// A file of sysfs that is open says what is so now, a new name too, until its device is gone: then it can be read no more
/// (`ENODEV`, `kernfs_get_active` in the kernel's `fs/kernfs/file.c`), whatever has its path by then.
#[derive(Debug)]
pub struct Held {
    ibdev: File,
    pci: Fact<PciAddress>,
}

impl Held {
    /// The device that has the number now.
    #[must_use]
    pub fn open(root: &Root, number: u32) -> Option<Self> {
        let path = format!("{VERBS}/uverbs{number}");
        // The file first: if the device goes in between, it is that of a device that is gone.
        let ibdev = root.open(&format!("{path}/ibdev")).ok()?;
        let pci = function_of(root, &format!("{path}/device"));
        Some(Self { ibdev, pci })
    }

    /// Who it belongs to now; nothing where the device is gone or cannot be read.
    #[must_use]
    pub fn owner(&self) -> Option<VerbsOwner> {
        // `IB_DEVICE_NAME_MAX` is 64.
        let mut name = [0; 65];
        let length = self.ibdev.read_at(&mut name, 0).ok()?;
        let name = std::str::from_utf8(name.get(..length)?).ok()?.trim();
        // Elsewhere than in sysfs a file that is gone can be read still.
        let there = self.ibdev.metadata().ok()?.nlink() > 0;
        (there && !name.is_empty()).then(|| VerbsOwner {
            rdma: Fact::Known(name.to_owned()),
            pci: self.pci.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
