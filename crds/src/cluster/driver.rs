//! Where the RDMA driver comes from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// The RDMA driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = rules::driver)]
pub struct Driver {
    /// Where the driver comes from.
    pub source: DriverSource,
    /// The driver container, for source `Container`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<DriverContainer>,
    /// The packages, for source `HostPackages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_packages: Option<HostPackages>,
    /// Keys to set in `/etc/infiniband/openib.conf`; comments and other keys stay.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = rules::openib_conf)]
    pub openib_conf: BTreeMap<String, String>,
    /// Kernel modules to have loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_-]*$")), transform = rules::modules)]
    pub modules: Vec<String>,
}

/// Where the RDMA driver comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DriverSource {
    /// Whatever runs is accepted; its modules are never loaded or unloaded.
    #[default]
    Existing,
    /// A driver container on each node.
    Container,
    /// Packages of the host's distribution.
    HostPackages,
}

/// A driver container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rules::container)]
pub struct DriverContainer {
    /// Repository, such as `nvcr.io/nvidia/mellanox`.
    #[schemars(length(min = 1, max = 255))]
    pub repository: String,
    /// Image name, such as `doca-driver`.
    #[schemars(length(min = 1, max = 128))]
    pub image: String,
    /// Image tag or version.
    #[schemars(length(min = 1, max = 128))]
    pub version: String,
    /// Whether a precompiled image is used.
    #[serde(default)]
    pub precompiled: Precompiled,
    /// Environment of the container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = rules::env)]
    pub env: BTreeMap<String, String>,
    /// Pull secrets in the operator's namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        inner(
            length(min = 1, max = 253),
            regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
        )
    )]
    pub image_pull_secrets: Vec<String>,
}

/// Whether a precompiled driver image is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Precompiled {
    /// Where there is one for the kernel.
    #[default]
    Prefer,
    /// Only.
    Require,
    /// Never.
    Never,
}

/// Packages of the host's distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rules::host_packages)]
pub struct HostPackages {
    /// Version to have installed.
    #[schemars(length(min = 1, max = 64))]
    pub version: String,
    /// Package names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        inner(
            length(min = 1, max = 128),
            regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9+._:~-]*$")
        )
    )]
    pub packages: Vec<String>,
    /// Signed repositories to install from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub repositories: Vec<PackageRepository>,
}

/// A signed package repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rules::repository)]
pub struct PackageRepository {
    /// `https://…`.
    #[schemars(length(min = 1, max = 512))]
    pub url: String,
    /// Signing key: armoured text or an `https://` URL.
    #[schemars(length(min = 1, max = 16384))]
    pub signing_key: String,
    /// Suite, for apt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 128),
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")
    )]
    pub suite: Option<String>,
    /// Components, for apt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(
            length(min = 1, max = 64),
            regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")
        )
    )]
    pub components: Vec<String>,
}
