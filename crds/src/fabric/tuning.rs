//! PCIe and RDMA settings of the host. Omitted means Keep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// PCIe and RDMA settings of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = rules::tuning)]
pub struct Tuning {
    /// PCIe access control services between GPU and NIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acs: Option<Acs>,
    /// PCIe maximum read request of the NICs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub max_read_request_bytes: Option<u32>,
    /// Network namespace mode of RDMA devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_netns: Option<RdmaNetns>,
}

/// What to do with access control services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Acs {
    /// Redirection between GPU and NIC is switched off.
    Disable,
}

/// Network namespace mode of RDMA devices (`rdma system show`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RdmaNetns {
    /// Every namespace sees every device.
    Shared,
    /// A device belongs to one namespace.
    Exclusive,
}
