//! Which NIC is closest to which GPU, and who gets which: the machine model, PCIe distance, pairing, partition,
//! preferred allocation and their explanation. Pure: no IO, no clock, no environment.

pub mod description;
pub mod distance;
pub mod fact;
pub mod file;
mod hwloc_xml;
pub mod machine;
pub mod nccl_xml;
pub mod node_file;
pub mod pairing;
pub mod partition;
pub mod paths;
pub mod pci;
pub mod policy;
pub mod preferred;
pub mod render;
pub mod report;

#[cfg(test)]
mod test_machines;
