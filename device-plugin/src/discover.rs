//! `device-plugin discover`: which NIC is closest to which GPU, from a running machine or from a description of one.

use std::path::{Path, PathBuf};

use host::machine;
use host::root::Root;
use topology::machine::Machine;
use topology::policy::ResourcePolicy;
use topology::{description, nccl_xml, render, report};

/// Where the machine comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Its `/sys` and `/proc`, below this root.
    Root(PathBuf),
    /// A description: machine file, NCCL topology file, or export of hwloc.
    File(PathBuf),
}

/// How to print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Tables and reasons, for people.
    Table,
    /// For programs.
    Json,
    /// The same as JSON, easier to read.
    Yaml,
    /// A picture.
    Svg,
}

/// A machine that could not be described.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// No such file, or not readable.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no such directory.
    #[error("--root {0}: no such directory; name the one that holds sys and proc")]
    NoRoot(PathBuf),
    /// Not a description of a machine.
    #[error("machine file {path}")]
    Machine {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: description::DescriptionError,
    },
    /// Not a topology file.
    #[error("--topology-file")]
    Topology(#[from] nccl_xml::XmlError),
    /// JSON could not be written.
    #[error("write JSON")]
    Json(#[from] serde_json::Error),
    /// YAML could not be written.
    #[error("write YAML")]
    Yaml(#[from] serde_yaml::Error),
}

/// Reads the machine; `topology_file` states the distances that `/sys` does not show.
pub fn read(
    origin: &Origin,
    topology_file: Option<&Path>,
    options: &machine::Options,
) -> Result<Machine, DiscoverError> {
    let mut machine = match origin {
        Origin::Root(path) if !path.is_dir() => return Err(DiscoverError::NoRoot(path.clone())),
        Origin::Root(path) => machine::machine(&Root::new(path), options),
        Origin::File(path) => {
            let name = path.display().to_string();
            description::machine(&text(path)?, &name, &options.gpu_vendors).map_err(|source| {
                DiscoverError::Machine {
                    path: path.clone(),
                    source,
                }
            })?
        }
    };
    if let Some(path) = topology_file {
        machine.stated = Some(nccl_xml::read(
            &text(path)?,
            &path.display().to_string(),
            &machine,
        )?);
    }
    Ok(machine)
}

fn text(path: &Path) -> Result<String, DiscoverError> {
    std::fs::read_to_string(path).map_err(|source| DiscoverError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The machine in the chosen format.
pub fn print(
    machine: &Machine,
    policy: &ResourcePolicy,
    format: Format,
) -> Result<String, DiscoverError> {
    let paths = machine.paths();
    let discovery = report::discovery(machine, &paths, policy);
    Ok(match format {
        Format::Table => render::table(&discovery),
        Format::Json => serde_json::to_string_pretty(&discovery)? + "\n",
        Format::Yaml => serde_yaml::to_string(&discovery)?,
        Format::Svg => render::svg(machine, &paths, &discovery),
    })
}

#[cfg(test)]
mod tests;
