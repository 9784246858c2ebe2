//! Machine files: machines that somebody described in YAML, for tests, simulation and `discover` without hardware.
//!
//! Pure: the caller reads the text. The format is that of `topology/tests/machines`: GPUs, NICs, a printed
//! `nvidia-smi topo -m` matrix, a PCIe tree, each as far as it is known. A tree of completeness `virtual` that comes
//! from an NCCL topology file is a cloud's invented tree: such a machine's `/sys` shows each device alone, directly
//! below its own root, and the tree becomes stated distances of a topology file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::distance::{Cells, Distance, DistanceSource, StatedDistances};
use crate::machine::{Machine, PciFunction, PciParent};
use crate::pci::PciAddress;

mod devices;
mod matrix;
mod raw;
mod tree;

/// A machine file, read.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineFile {
    /// Short name; that of the file.
    pub name: String,
    /// What the machine is.
    pub title: String,
    /// Whether it is a virtual machine; `None` where nobody said.
    pub is_virtual: Option<bool>,
    /// How much of the PCIe tree is there.
    pub completeness: Completeness,
    /// Where the facts come from: `sysfs`, `lspci`, `nccl-topo-xml`, …
    pub source_kind: String,
    /// What to know before believing it.
    pub notes: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// The tree of the machine's topology file, where it has one; write it with [`crate::nccl_xml::write`].
    pub topology_file: Option<BTreeMap<PciAddress, PciFunction>>,
    /// The closest NICs of each GPU by its index, as the file states them.
    pub closest: BTreeMap<usize, Closest>,
}

/// The closest NICs of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closest {
    /// Their distance; `None` where there is no NIC.
    pub distance: Option<Distance>,
    /// Their names.
    pub nics: Vec<String>,
}

/// How much of a machine's PCIe tree is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Completeness {
    /// Every function.
    Full,
    /// One node per switch, or only some bridges.
    SwitchesOnly,
    /// A guest's view, or a cloud's invented tree.
    Virtual,
    /// No tree.
    None,
}

/// A text that is no machine file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// No YAML, or an unknown or missing field.
    #[error("machine file: not in the machine file format")]
    Yaml(#[source] serde_yaml::Error),
    /// A value that does not fit its field.
    #[error("machine file: {field}: `{value}` is not valid; write {remedy}")]
    Value {
        /// Path of the field.
        field: String,
        /// What is there.
        value: String,
        /// What should be.
        remedy: String,
    },
    /// An address that two functions have.
    #[error(
        "machine file: pcie_tree.nodes: address {0} occurs twice; each PCI function has its own"
    )]
    DuplicateAddress(PciAddress),
    /// An index that two devices have.
    #[error("machine file: {list}: index {index} occurs twice; number the devices from 0")]
    DuplicateIndex {
        /// `gpus` or `nics`.
        list: &'static str,
        /// The index.
        index: usize,
    },
}

impl FileError {
    fn value(field: impl Into<String>, value: impl std::fmt::Display, remedy: &str) -> Self {
        Self::Value {
            field: field.into(),
            value: value.to_string(),
            remedy: remedy.to_owned(),
        }
    }
}

/// Reads a machine file.
pub fn parse(text: &str) -> Result<MachineFile, FileError> {
    let raw: raw::File = serde_yaml::from_str(text).map_err(FileError::Yaml)?;
    let functions = tree::functions(&raw.pcie_tree)?;
    let mut machine = Machine {
        gpus: devices::gpus(&raw, &functions)?,
        nics: devices::nics(&raw, &functions)?,
        functions,
        stated: None,
        tree_file: None,
        notes: Vec::new(),
    };
    let invented =
        raw.pcie_tree.completeness == Completeness::Virtual && raw.source.kind == "nccl-topo-xml";
    let topology_file = invented.then(|| hide_tree(&mut machine, &raw.name));
    if let Some(matrix) = &raw.matrix {
        matrix::apply(matrix, &mut machine)?;
    }
    Ok(MachineFile {
        closest: closest(&raw)?,
        is_virtual: raw.facts.is_virtual.as_bool(),
        completeness: raw.pcie_tree.completeness,
        source_kind: raw.source.kind,
        notes: raw.facts.notes,
        name: raw.name,
        title: raw.title,
        machine,
        topology_file,
    })
}

/// Takes the invented tree out of the machine and leaves what a guest's `/sys` shows. Returns the tree.
fn hide_tree(machine: &mut Machine, name: &str) -> BTreeMap<PciAddress, PciFunction> {
    let paths = machine.paths();
    let mut cells = Cells::new();
    for gpu in &machine.gpus {
        let row = machine
            .nics
            .iter()
            .map(|nic| (nic.index, paths.distance(gpu.index, nic.index)));
        cells.insert(gpu.index, row.collect());
    }
    let own: Vec<PciAddress> = machine
        .gpus
        .iter()
        .filter_map(|gpu| gpu.pci)
        .chain(machine.nics.iter().filter_map(|nic| nic.pci))
        .collect();
    let alone = |address: &PciAddress| {
        let function = machine.functions.get(address)?.clone();
        Some((
            *address,
            PciFunction {
                parent: PciParent::HostBridge(format!("root of {address}")),
                ..function
            },
        ))
    };
    let visible = own.iter().filter_map(alone).collect();
    let source = DistanceSource::TopologyFile(format!("{name}.xml"));
    machine.stated = Some(StatedDistances {
        source,
        cells,
        gpu_cells: Cells::new(),
        nic_cells: Cells::new(),
    });
    std::mem::replace(&mut machine.functions, visible)
}

fn closest(raw: &raw::File) -> Result<BTreeMap<usize, Closest>, FileError> {
    let entry = |(name, closest): (&String, &raw::Closest)| {
        let field = format!("closest_nics.{name}");
        let index = name
            .strip_prefix("GPU")
            .and_then(|index| index.parse().ok());
        let index =
            index.ok_or_else(|| FileError::value(&field, name, "GPU and its index, as in GPU0"))?;
        let distance = closest
            .distance
            .as_ref()
            .map(|text| matrix::distance(text, &field))
            .transpose()?;
        Ok((
            index,
            Closest {
                distance,
                nics: closest.nics.clone(),
            },
        ))
    };
    raw.closest_nics.iter().map(entry).collect()
}

#[cfg(test)]
mod tests;
