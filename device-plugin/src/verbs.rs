//! Whether a uverbs device is still the one of the NIC that the node file says. Pure: a function of (NIC, what `/sys`
//! shows); [`crate::allocate`], [`crate::keeper`] and [`crate::doctor`] ask.
//!
//! The kernel gives uverbs numbers and RDMA device names anew when a NIC, its driver or the modules come back, and the
//! node file names the old ones until the agent has looked again. Both name and PCI function count: cards that swapped
//! places may have swapped names too. What cannot be told is no evidence.

use host::machine::verbs::VerbsOwner;
use topology::fact::Fact;
use topology::node_file::NodeNic;

/// What the owner of a uverbs device says of a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owned {
    /// It is the NIC's.
    Own,
    /// It is another's; the text names both.
    Others(String),
    /// Nobody could tell, or the node file names none.
    Unknown,
}

/// Compares a NIC of the node file with the owner of its uverbs device.
#[must_use]
pub fn judge(nic: &NodeNic, owner: impl FnOnce(u32) -> VerbsOwner) -> Owned {
    let Some(number) = nic.uverbs else {
        return Owned::Unknown;
    };
    let owner = owner(number);
    let pci = owner.pci.known().map(ToString::to_string);
    let other_name = owner.rdma.known().is_some_and(|rdma| *rdma != nic.rdma);
    let other_place = pci.is_some() && nic.pci.is_some() && pci != nic.pci;
    if other_name || other_place {
        return Owned::Others(others(nic, number, &owner));
    }
    let told = owner.rdma.known().is_some() && !matches!(owner.pci, Fact::Unreadable(_));
    if told { Owned::Own } else { Owned::Unknown }
}

fn others(nic: &NodeNic, number: u32, owner: &VerbsOwner) -> String {
    let now = named(
        owner.rdma.known().map_or("another device", String::as_str),
        owner.pci.known().map(ToString::to_string).as_deref(),
    );
    let before = named(&nic.rdma, nic.pci.as_deref());
    format!(
        "/dev/infiniband/uverbs{number} belongs to {now} now, and to {before} in the node file; it is handed out again \
         once the agent has written what is so now"
    )
}

fn named(rdma: &str, pci: Option<&str>) -> String {
    pci.map_or_else(|| rdma.to_owned(), |pci| format!("{rdma} ({pci})"))
}

#[cfg(test)]
mod tests;
