//! What goes with what: a table of rows from public documents, and verdicts of a node against it. Pure; [`matrix`] loads
//! the table, [`version`] compares versions. Called by [`crate::planner`] before a driver is changed.
//!
//! A row refuses only what it is about. Where the table says nothing, that is said, and nothing is refused.

pub mod matrix;
pub mod version;

use host::facts::driver::GpuDriver;
use host::facts::platform::OsRelease;

use self::matrix::{Matrix, Train};
use self::version::{Ofed, covers, older};
use crate::packages::Installed;

/// How bad a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Must not be done.
    Refused,
    /// Works with less than is meant.
    Doubtful,
    /// The table does not say.
    Unlisted,
}

/// What a row says about a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verdict {
    /// How bad it is.
    pub weight: Weight,
    /// The row's id.
    pub row: String,
    /// What does not go together, and what would.
    pub message: String,
    /// Where the row comes from.
    pub source: String,
}

impl Verdict {
    /// The verdict as a person reads it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} [row {}; {}]", self.message, self.row, self.source)
    }
}

/// A NIC of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicSeen {
    /// RDMA device name.
    pub name: String,
    /// PCI device id; of a virtual function, that of its physical one.
    pub device: Option<u16>,
    /// Firmware version.
    pub firmware: Option<String>,
}

/// What is known of a node; `None` says that it is not known.
#[derive(Clone, Debug, Default)]
pub struct Node<'a> {
    /// The distribution.
    pub os: Option<&'a OsRelease>,
    /// Its RDMA NICs.
    pub nics: Vec<NicSeen>,
    /// The GPU driver that is loaded.
    pub gpu_driver: Option<&'a GpuDriver>,
    /// Whether Secure Boot is on.
    pub secure_boot: Option<bool>,
    /// Installed packages.
    pub installed: Option<&'a Installed>,
}

/// A driver that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A release of DOCA-OFED or `MLNX_OFED`.
    Rdma {
        /// DOCA release, `3.2.2`; `None` where only the OFED number is known.
        doca: Option<String>,
        /// OFED number, `25.10`.
        ofed: Option<String>,
    },
    /// A branch of the GPU driver, `580`, or a whole version.
    Gpu(String),
}

/// What a package and version ask for; `None` where that is no driver of the table.
#[must_use]
pub fn wanted(package: &str, version: &str) -> Option<Wanted> {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    if package.starts_with("doca-") {
        return Some(Wanted::Rdma {
            doca: Some(version::leading(version)),
            ofed: None,
        });
    }
    if package.starts_with("mlnx-ofed") {
        let ofed = Ofed::parse(version)?.number();
        return Some(Wanted::Rdma {
            doca: None,
            ofed: Some(ofed),
        });
    }
    let gpu = [
        "nvidia-driver",
        "nvidia-open",
        "cuda-drivers",
        "kmod-nvidia",
    ];
    let is_gpu = gpu.iter().any(|prefix| package.starts_with(prefix));
    is_gpu.then(|| Wanted::Gpu(version::leading(version)))
}

/// What an image tag such as `doca3.2.2-25.10-1.2.8.0-2` asks for.
#[must_use]
pub fn wanted_by_tag(tag: &str) -> Option<Wanted> {
    let doca = tag.strip_prefix("doca").map(version::leading);
    let ofed = Ofed::parse(tag).map(|ofed| ofed.number());
    (doca.is_some() || ofed.is_some()).then_some(Wanted::Rdma { doca, ofed })
}

/// Every row that speaks against `wanted` on `node`, the worst first.
#[must_use]
pub fn check(matrix: &Matrix, node: &Node<'_>, wanted: &Wanted) -> Vec<Verdict> {
    let mut verdicts = match wanted {
        Wanted::Rdma { doca, ofed } => match matrix.train(doca.as_deref(), ofed.as_deref()) {
            Some(train) => rdma(matrix, node, train, doca.is_none()),
            None => vec![unlisted(doca.as_deref().or(ofed.as_deref()).unwrap_or("?"))],
        },
        Wanted::Gpu(version) => cuda(matrix, node, version),
    };
    verdicts.sort();
    verdicts.dedup();
    verdicts
}

fn unlisted(release: &str) -> Verdict {
    Verdict {
        weight: Weight::Unlisted,
        row: "trains".to_owned(),
        message: format!(
            "the compatibility table has no row for release {release}: nothing is known for or against it"
        ),
        source: "this table".to_owned(),
    }
}

fn rdma(matrix: &Matrix, node: &Node<'_>, train: &Train, standalone: bool) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = system(node, train).into_iter().collect();
    for nic in &node.nics {
        verdicts.extend(generation(matrix, nic, train, standalone));
        verdicts.extend(firmware(matrix, nic, train));
    }
    if train.builds_on_node && node.secure_boot == Some(true) {
        verdicts.push(Verdict {
            weight: Weight::Doubtful,
            row: format!("{}/secure-boot", train.id),
            message: format!("DOCA {} is built on the node by DKMS and Secure Boot is on: its modules load only if DKMS's signing key is enrolled (`mokutil --import`)", train.doca),
            source: train.source.clone(),
        });
    }
    verdicts
}

/// A distribution that the row does not name is one that nobody has looked at; a version beside those named is refused.
fn system(node: &Node<'_>, train: &Train) -> Option<Verdict> {
    let os = node.os?;
    let version = os.version_id.as_deref()?;
    let names = || std::iter::once(&os.id).chain(&os.id_like);
    let shown = format!("{} {version}", os.id);
    let row = format!("{}/systems", train.id);
    let Some((name, versions)) = names().find_map(|name| train.systems.get_key_value(name)) else {
        return Some(Verdict {
            weight: Weight::Unlisted,
            row,
            message: format!(
                "the table names no release of {} for DOCA {}",
                os.id, train.doca
            ),
            source: train.source.clone(),
        });
    };
    let listed = versions.iter().any(|listed| covers(listed, version));
    (!listed).then(|| Verdict {
        weight: Weight::Refused,
        row,
        message: format!(
            "DOCA {} is not made for {shown}, but for {name} {}",
            train.doca,
            versions.join(", ")
        ),
        source: train.source.clone(),
    })
}

fn generation(matrix: &Matrix, nic: &NicSeen, train: &Train, standalone: bool) -> Option<Verdict> {
    let row = matrix.nic(nic.device?)?;
    let past = row
        .last
        .as_deref()
        .is_some_and(|last| older(last, &train.doca));
    let early = row
        .after
        .as_deref()
        .is_some_and(|after| !older(after, &train.doca));
    let alone = standalone && row.needs_doca;
    let why = if past {
        format!(
            "its last release is DOCA {}",
            row.last.as_deref().unwrap_or_default()
        )
    } else if early {
        format!(
            "releases after DOCA {} know it",
            row.after.as_deref().unwrap_or_default()
        )
    } else if alone {
        "it needs DOCA, which MLNX_OFED is not".to_owned()
    } else {
        return None;
    };
    Some(Verdict {
        weight: Weight::Refused,
        row: row.id.clone(),
        message: format!(
            "DOCA {} does not support {} ({}): {why}",
            train.doca, row.nic, nic.name
        ),
        source: row.source.clone(),
    })
}

/// The first number is the device family: versions are compared within one only.
fn firmware(matrix: &Matrix, nic: &NicSeen, train: &Train) -> Option<Verdict> {
    let running = nic.firmware.as_deref()?;
    let generation = &matrix.nic(nic.device?)?.nic;
    let row = matrix.firmware.iter().find(|row| {
        &row.nic == generation
            && row.doca == train.doca
            && version::family(&row.firmware) == version::family(running)
    })?;
    older(running, &row.firmware).then(|| Verdict {
        weight: Weight::Doubtful,
        row: row.id.clone(),
        message: format!(
            "{} ({}) runs firmware {running}; DOCA {} was tested with {} and newer",
            nic.name, row.nic, train.doca, row.firmware
        ),
        source: row.source.clone(),
    })
}

/// CUDA toolkits that are installed and need a newer GPU driver than the one that is asked for.
fn cuda(matrix: &Matrix, node: &Node<'_>, version: &str) -> Vec<Verdict> {
    let installed = node.installed.into_iter().flatten();
    let toolkit = |name: &str| Some(name.strip_prefix("cuda-toolkit-")?.replace('-', "."));
    let toolkits: Vec<String> = installed.filter_map(|(name, _)| toolkit(name)).collect();
    let needs = matrix
        .cuda
        .iter()
        .filter(|row| toolkits.contains(&row.cuda));
    // A branch without the rest of its version stands for its newest release.
    let too_old = |needed: &str| {
        if version.contains('.') {
            older(version, needed)
        } else {
            older(version, &version::family(needed))
        }
    };
    needs
        .filter(|row| too_old(&row.driver))
        .map(|row| Verdict {
            weight: Weight::Refused,
            row: row.id.clone(),
            message: format!(
                "CUDA {} is installed and needs GPU driver {} or newer, not {version}",
                row.cuda, row.driver
            ),
            source: row.source.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
