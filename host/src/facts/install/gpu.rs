//! Where the GPU driver lives, who owns it, and the parameters that it runs with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use crate::facts::Sourced;
use crate::root::Root;

/// Parameters of the loaded driver (`NVreg_…`, open-gpu-kernel-modules `nv-procfs.c`).
const PARAMETERS: &str = "/proc/driver/nvidia/params";
/// Where gpu-operator's validator writes what it has checked.
const VALIDATIONS: &str = "/run/nvidia/validations";
/// Root of gpu-operator's driver container, as the host sees it.
pub(super) const CONTAINER_ROOT: &str = "/run/nvidia/driver";
/// Where a driver may live, and what proves it: a library directory of the driver container, GKE's installer, the host.
const ROOTS: &[(&str, &str)] = &[
    (CONTAINER_ROOT, "/run/nvidia/driver/usr/bin/nvidia-smi"),
    (
        "/home/kubernetes/bin/nvidia",
        "/home/kubernetes/bin/nvidia/bin/nvidia-smi",
    ),
    ("/", "/usr/bin/nvidia-smi"),
];

/// Where the GPU driver lives, who owns it and how it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuInstall {
    /// Directories that a GPU driver's programs are in, `/` for the host itself.
    pub roots: Vec<String>,
    /// What gpu-operator has checked on this node; `Absent` where it does not run.
    pub gpu_operator: Sourced<Vec<String>>,
    /// Parameters of the loaded driver.
    pub parameters: Sourced<BTreeMap<String, String>>,
}

impl GpuInstall {
    /// Whether the driver belongs to gpu-operator's driver container.
    #[must_use]
    pub fn in_container(&self) -> bool {
        self.roots.iter().any(|root| root == CONTAINER_ROOT)
    }

    /// Whether gpu-operator is at home on this node: its driver is then its own business.
    #[must_use]
    pub fn owned_by_operator(&self) -> bool {
        self.in_container() || self.gpu_operator.fact.known().is_some()
    }
}

pub(super) fn gpu(root: &Root) -> GpuInstall {
    let there = |(_, proof): &&(&str, &str)| root.resolve(proof).is_ok();
    let parameters: Fact<String> = root.read(PARAMETERS);
    GpuInstall {
        roots: ROOTS
            .iter()
            .filter(there)
            .map(|(path, _)| (*path).to_owned())
            .collect(),
        gpu_operator: Sourced::new(VALIDATIONS, root.entries(VALIDATIONS)),
        parameters: Sourced::new(PARAMETERS, parameters.map(|text| parse_parameters(&text))),
    }
}

/// `GrdmaPciTopoCheckOverride: 0`, one a line; a text in quotes.
fn parse_parameters(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((
            name.trim().to_owned(),
            value.trim().trim_matches('"').to_owned(),
        ))
    };
    text.lines().filter_map(pair).collect()
}
