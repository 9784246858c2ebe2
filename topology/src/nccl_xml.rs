//! NCCL topology files: reads distances out of one, describes a machine by one, and writes one for a host.
//!
//! Pure. The format is NCCL's (`src/graph/xml.cc`, `topo.cc`): `system` > `cpu` > nested `pci`, one `pci` per switch.
//! NCCL knows no host bridges, only one `cpu` per NUMA node, so PHB and NODE cannot be told apart: what runs through
//! one `cpu` reads as NODE, the farther of the two.

use roxmltree::Node;

use crate::distance::{Cells, Distance, DistanceSource, StatedDistances};
use crate::machine::Machine;
use crate::pci::ParsePciAddressError;
use tree::Tree;

mod describe;
mod invent;
mod tree;
mod write;

pub(crate) use describe::describe;
pub use write::write;

/// A text that is no NCCL topology file.
#[derive(Debug, thiserror::Error)]
pub enum XmlError {
    /// No XML.
    #[error("topology file {path}: no well-formed XML")]
    Xml {
        /// The file.
        path: String,
        /// What is wrong.
        #[source]
        source: roxmltree::Error,
    },
    /// A root or version that NCCL refuses.
    #[error(
        "topology file {path}: the root must be <system version=\"1\">, found {found}; NCCL refuses anything else"
    )]
    Root {
        /// The file.
        path: String,
        /// What is there.
        found: String,
    },
    /// An element that lacks what identifies it.
    #[error(
        "topology file {path}: <{element}> at line {line} has no attribute {attribute}; add it"
    )]
    Attribute {
        /// The file.
        path: String,
        /// The element.
        element: String,
        /// Line of the element.
        line: u32,
        /// The attribute.
        attribute: &'static str,
    },
    /// A bus id that is no address.
    #[error("topology file {path}: <{element}> at line {line}")]
    Address {
        /// The file.
        path: String,
        /// The element.
        element: String,
        /// Line of the element.
        line: u32,
        /// What is wrong.
        #[source]
        source: ParsePciAddressError,
    },
    /// A device that the file has twice.
    #[error("topology file {path}: busid {busid} occurs twice; each PCI function has its own")]
    Duplicate {
        /// The file.
        path: String,
        /// The address.
        busid: String,
    },
}

impl XmlError {
    fn root(path: &str, node: Node<'_, '_>) -> Self {
        let version = node.attribute("version").unwrap_or_default();
        Self::Root {
            path: path.to_owned(),
            found: format!("<{} version={version:?}>", node.tag_name().name()),
        }
    }

    pub(crate) fn attribute(path: &str, node: Node<'_, '_>, attribute: &'static str) -> Self {
        Self::Attribute {
            path: path.to_owned(),
            element: node.tag_name().name().to_owned(),
            line: line(node),
            attribute,
        }
    }

    pub(crate) fn address(path: &str, node: Node<'_, '_>, source: ParsePciAddressError) -> Self {
        Self::Address {
            path: path.to_owned(),
            element: node.tag_name().name().to_owned(),
            line: line(node),
            source,
        }
    }
}

fn line(node: Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

/// Reads what a topology file says of the distances between a machine's GPUs and NICs. GPUs are found by `busid`, NICs
/// by the name of their `net` element or by `busid`; where NCCL folded a function into function 0 of its slot, there.
/// Devices that the file does not have get no cell.
pub fn read(text: &str, path: &str, machine: &Machine) -> Result<StatedDistances, XmlError> {
    let tree = Tree::parse(text, path)?;
    let gpus: Vec<(usize, Option<usize>)> = machine
        .gpus
        .iter()
        .map(|gpu| (gpu.index, gpu.pci.and_then(|pci| tree.by_address(pci))))
        .collect();
    let nics: Vec<(usize, Option<usize>)> = machine
        .nics
        .iter()
        .map(|nic| (nic.index, tree.nic(nic)))
        .collect();
    let source = DistanceSource::TopologyFile(path.to_owned());
    let cells = cells(&tree, &gpus, &nics);
    Ok(StatedDistances {
        source,
        cells,
        gpu_cells: cells_of(&tree, &gpus),
        nic_cells: cells_of(&tree, &nics),
    })
}

fn cells_of(tree: &Tree, devices: &[(usize, Option<usize>)]) -> Cells {
    let mut cells = cells(tree, devices, devices);
    for (index, row) in &mut cells {
        row.remove(index);
    }
    cells.retain(|_, row| !row.is_empty());
    cells
}

fn cells(
    tree: &Tree,
    rows: &[(usize, Option<usize>)],
    columns: &[(usize, Option<usize>)],
) -> Cells {
    let mut cells = Cells::new();
    for (row, a) in rows {
        for (column, b) in columns {
            let distance = a
                .zip(*b)
                .map_or(Distance::Unknown, |(a, b)| tree.distance(a, b));
            if distance != Distance::Unknown {
                cells.entry(*row).or_default().insert(*column, distance);
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests;
