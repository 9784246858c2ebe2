//! How changes roll over the nodes.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// How changes roll over the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = rules::upgrade)]
pub struct Upgrade {
    /// Nodes under maintenance at a time: a number or a percentage.
    #[schemars(extend("maxLength" = 8, "nullable" = false))]
    pub max_unavailable: IntOrString,
    /// What happens to pods that hold our resources.
    pub workloads: Workloads,
    /// How long to wait for them, such as `30m`; omitted: for ever, shown in status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 16))]
    pub wait_timeout: Option<String>,
}

impl Default for Upgrade {
    fn default() -> Self {
        Self {
            max_unavailable: IntOrString::Int(1),
            workloads: Workloads::Wait,
            wait_timeout: None,
        }
    }
}

/// What happens to pods that hold our resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Workloads {
    /// They are waited for.
    #[default]
    Wait,
    /// They are evicted, within their disruption budgets.
    Evict,
}
