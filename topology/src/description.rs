//! A machine from a text that describes it: a machine file (YAML), an NCCL topology file or an export of hwloc (XML).
//!
//! Pure: the caller reads the text. Which of the three it is, the text says itself.

use std::collections::BTreeSet;

use roxmltree::{Document, ParsingOptions};

use crate::file::{self, FileError};
use crate::machine::Machine;
use crate::nccl_xml::{self, XmlError};
use crate::{hwloc_xml, machine};

/// A text that describes no machine.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum DescriptionError {
    /// No machine file.
    File(#[from] FileError),
    /// No topology file, and no export of hwloc.
    Xml(#[from] XmlError),
}

/// Reads a description; `path` names it in notes and errors. Functions of `gpu_vendors` are the GPUs of an export of hwloc,
/// which does not say itself which they are.
pub fn machine(
    text: &str,
    path: &str,
    gpu_vendors: &BTreeSet<u16>,
) -> Result<machine::Machine, DescriptionError> {
    if text.trim_start().starts_with('<') {
        Ok(from_xml(text, path, gpu_vendors)?)
    } else {
        Ok(file::parse(text)?.machine)
    }
}

fn from_xml(text: &str, path: &str, gpu_vendors: &BTreeSet<u16>) -> Result<Machine, XmlError> {
    // Exports of hwloc name their DTD; it is not read.
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|source| XmlError::Xml {
        path: path.to_owned(),
        source,
    })?;
    if document.root_element().has_tag_name("topology") {
        hwloc_xml::describe(&document, path, gpu_vendors)
    } else {
        nccl_xml::describe(&document, path)
    }
}

#[cfg(test)]
mod tests;
