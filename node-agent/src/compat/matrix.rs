//! The table itself: typed rows, loaded from YAML. The one that is built in can be replaced by a file. Pure but for
//! [`load`], which reads that file; the command line calls it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::version::{covers, leading};

/// The table that is built in.
const BUILT_IN: &str = include_str!("matrix.yaml");
/// The form of the table that this version reads.
const SCHEMA: u32 = 1;

/// What goes with what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Matrix {
    /// Form of the table.
    pub schema: u32,
    /// Releases of DOCA and the OFED in each.
    pub trains: Vec<Train>,
    /// Generations of NICs.
    pub nics: Vec<NicRow>,
    /// Firmware that releases were tested with.
    pub firmware: Vec<FirmwareRow>,
    /// GPU drivers that CUDA needs.
    pub cuda: Vec<CudaRow>,
    /// Branches of the GPU driver.
    pub gpu_branches: Vec<BranchRow>,
    /// GPUs and whether GPU-direct RDMA is for them.
    pub gpus: Vec<GpuRow>,
    /// What DMA-BUF needs.
    pub dma_buf: DmaBufRow,
}

/// A release train.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Train {
    /// Name of the row.
    pub id: String,
    /// DOCA release.
    pub doca: String,
    /// OFED number in it.
    pub ofed: String,
    /// Distribution → releases.
    #[serde(default)]
    pub systems: BTreeMap<String, Vec<String>>,
    /// Whether its modules are built on the node.
    #[serde(default)]
    pub builds_on_node: bool,
    /// Where this comes from.
    pub source: String,
}

/// A generation of NICs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NicRow {
    /// Name of the row.
    pub id: String,
    /// Name of the generation.
    pub nic: String,
    /// PCI device ids, hexadecimal.
    pub devices: Vec<String>,
    /// The last DOCA release for it.
    #[serde(default)]
    pub last: Option<String>,
    /// The newest DOCA release that does not know it.
    #[serde(default)]
    pub after: Option<String>,
    /// Whether `MLNX_OFED` alone does not know it.
    #[serde(default)]
    pub needs_doca: bool,
    /// Where this comes from.
    pub source: String,
}

/// Firmware that a release was tested with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FirmwareRow {
    /// Name of the row.
    pub id: String,
    /// Generation.
    pub nic: String,
    /// DOCA release.
    pub doca: String,
    /// Firmware version.
    pub firmware: String,
    /// Where this comes from.
    pub source: String,
}

/// The GPU driver that a CUDA release needs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CudaRow {
    /// Name of the row.
    pub id: String,
    /// CUDA release.
    pub cuda: String,
    /// Oldest GPU driver.
    pub driver: String,
    /// Where this comes from.
    pub source: String,
}

/// A branch of the GPU driver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BranchRow {
    /// Name of the row.
    pub id: String,
    /// Branch.
    pub branch: u32,
    /// CUDA version that its libcuda speaks.
    pub cuda: String,
    /// Where this comes from.
    pub source: String,
}

/// GPUs and whether GPU-direct RDMA is for them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuRow {
    /// Name of the row.
    pub id: String,
    /// Words of the product's name; the first row of which one is in the name counts.
    pub products: Vec<String>,
    /// Architecture.
    pub architecture: String,
    /// Whether GPU-direct RDMA works.
    pub gpu_direct: bool,
    /// Whether DMA-BUF works.
    pub dma_buf: bool,
    /// Where this comes from.
    pub source: String,
}

/// What DMA-BUF needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DmaBufRow {
    /// Name of the row.
    pub id: String,
    /// Oldest kernel.
    pub kernel: String,
    /// Parts of the releases of older kernels that carry it all the same.
    pub backports: Vec<String>,
    /// Oldest GPU driver.
    pub driver: String,
    /// Oldest CUDA version.
    pub cuda: String,
    /// Where this comes from.
    pub source: String,
}

/// Why a table is refused.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The file could not be read.
    #[error(
        "read the compatibility table {path}; give a file of the form of the built-in one, or leave --compat out"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is no such table.
    #[error("the compatibility table {name} does not have the form of the built-in one")]
    Parse {
        /// The file.
        name: String,
        /// Where and why.
        #[source]
        source: serde_yaml::Error,
    },
    /// Another form.
    #[error(
        "the compatibility table {name} has schema {found}; this version reads schema {SCHEMA}"
    )]
    Schema {
        /// The file.
        name: String,
        /// What it has.
        found: u32,
    },
    /// A row that cannot be.
    #[error("the compatibility table {name}: row {row}: {field} `{value}`: {expected}")]
    Row {
        /// The file.
        name: String,
        /// The row.
        row: String,
        /// The field.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// The table that is built in. A test reads it, so that an empty one is never seen.
#[must_use]
pub fn built_in() -> Arc<Matrix> {
    Arc::new(parse("that is built in", BUILT_IN).unwrap_or_default())
}

/// The table of a file, or the one that is built in.
pub fn load(file: Option<&Path>) -> Result<Matrix, MatrixError> {
    let Some(path) = file else {
        return parse("that is built in", BUILT_IN);
    };
    let text = std::fs::read_to_string(path).map_err(|source| MatrixError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&path.display().to_string(), &text)
}

/// The table in `text`; `name` is for errors.
pub fn parse(name: &str, text: &str) -> Result<Matrix, MatrixError> {
    let matrix: Matrix = serde_yaml::from_str(text).map_err(|source| MatrixError::Parse {
        name: name.to_owned(),
        source,
    })?;
    if matrix.schema != SCHEMA {
        return Err(MatrixError::Schema {
            name: name.to_owned(),
            found: matrix.schema,
        });
    }
    let checked = unique(&matrix).and_then(|()| values(&matrix));
    checked.map_err(|(row, field, value, expected)| MatrixError::Row {
        name: name.to_owned(),
        row,
        field,
        value,
        expected,
    })?;
    Ok(matrix)
}

/// Row, field, value, what it should be.
type Wrong = (String, &'static str, String, &'static str);

/// Verdicts name rows, so each has a name of its own.
fn unique(matrix: &Matrix) -> Result<(), Wrong> {
    let mut seen = BTreeSet::new();
    for id in matrix.ids() {
        if id.is_empty() || !seen.insert(id) {
            let expected = "write a name that no other row has";
            return Err((id.to_owned(), "id", id.to_owned(), expected));
        }
    }
    Ok(())
}

/// Every version begins with a number, every device id is hexadecimal.
fn values(matrix: &Matrix) -> Result<(), Wrong> {
    for (id, field, text) in matrix.versions() {
        if leading(text).is_empty() {
            let expected = "write a version that begins with a digit, in quotes";
            return Err((id.to_owned(), field, text.to_owned(), expected));
        }
    }
    for row in &matrix.nics {
        for device in &row.devices {
            if u16::from_str_radix(device, 16).is_err() {
                let expected = "write the PCI device id as four hexadecimal digits, in quotes";
                return Err((row.id.clone(), "devices", device.clone(), expected));
            }
        }
    }
    Ok(())
}

impl Matrix {
    fn ids(&self) -> impl Iterator<Item = &str> {
        let trains = self.trains.iter().map(|row| row.id.as_str());
        let nics = self.nics.iter().map(|row| row.id.as_str());
        let firmware = self.firmware.iter().map(|row| row.id.as_str());
        let cuda = self.cuda.iter().map(|row| row.id.as_str());
        let branches = self.gpu_branches.iter().map(|row| row.id.as_str());
        let gpus = self.gpus.iter().map(|row| row.id.as_str());
        trains
            .chain(nics)
            .chain(firmware)
            .chain(cuda)
            .chain(branches)
            .chain(gpus)
            .chain([self.dma_buf.id.as_str()])
    }

    /// Row, field and text of every version.
    fn versions(&self) -> Vec<(&str, &'static str, &str)> {
        let mut all = Vec::new();
        for row in &self.trains {
            all.extend([
                (row.id.as_str(), "doca", row.doca.as_str()),
                (&row.id, "ofed", &row.ofed),
            ]);
        }
        for row in &self.nics {
            let ends = row
                .last
                .iter()
                .map(|last| (row.id.as_str(), "last", last.as_str()));
            let begins = row
                .after
                .iter()
                .map(|after| (row.id.as_str(), "after", after.as_str()));
            all.extend(ends.chain(begins));
        }
        for row in &self.firmware {
            all.push((row.id.as_str(), "firmware", row.firmware.as_str()));
        }
        for row in &self.cuda {
            all.extend([
                (row.id.as_str(), "cuda", row.cuda.as_str()),
                (&row.id, "driver", &row.driver),
            ]);
        }
        let dma_buf = &self.dma_buf;
        all.extend([
            (dma_buf.id.as_str(), "kernel", dma_buf.kernel.as_str()),
            (&dma_buf.id, "driver", &dma_buf.driver),
            (&dma_buf.id, "cuda", &dma_buf.cuda),
        ]);
        all
    }

    /// The train of a DOCA release or an OFED number.
    #[must_use]
    pub fn train(&self, doca: Option<&str>, ofed: Option<&str>) -> Option<&Train> {
        let mut trains = self.trains.iter();
        trains.find(|train| match (doca, ofed) {
            (Some(doca), _) => covers(&train.doca, doca),
            (None, Some(ofed)) => train.ofed == ofed,
            (None, None) => false,
        })
    }

    /// The generation of a NIC.
    #[must_use]
    pub fn nic(&self, device: u16) -> Option<&NicRow> {
        let of = |text: &String| u16::from_str_radix(text, 16) == Ok(device);
        self.nics.iter().find(|row| row.devices.iter().any(of))
    }

    /// What is known of a GPU, by the name of its product.
    #[must_use]
    pub fn gpu(&self, product: &str) -> Option<&GpuRow> {
        let words: Vec<&str> = product.split([' ', '-', '/']).collect();
        let named = |name: &String| {
            let name: Vec<&str> = name.split([' ', '-', '/']).collect();
            words.windows(name.len()).any(|window| window == name)
        };
        self.gpus.iter().find(|row| row.products.iter().any(named))
    }

    /// The CUDA version that a GPU driver's library speaks: that of its branch, or of the next older one that is listed.
    #[must_use]
    pub fn cuda_of(&self, driver: &str) -> Option<&str> {
        let branch: u32 = super::version::family(driver).parse().ok()?;
        let rows = self.gpu_branches.iter().filter(|row| row.branch <= branch);
        rows.max_by_key(|row| row.branch)
            .map(|row| row.cuda.as_str())
    }
}

#[cfg(test)]
mod tests;
