//! Which NIC is closest to which GPU, and who gets which: the machine model, PCIe distance, pairing, partition,
//! preferred allocation and their explanation. Pure: no IO, no clock, no environment.

pub mod distance;
pub mod fact;
pub mod machine;
pub mod node_file;
pub mod pci;
pub mod policy;
