//! What the operator saw of the cluster's nodes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What the operator saw of the cluster's nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::status)]
pub struct GpuRdmaClusterStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Nodes that the selector matches.
    pub matched: u32,
    /// Nodes that another cluster has.
    pub conflicting: u32,
    /// Nodes without a GPU or without a NIC: in no count below.
    pub not_applicable: u32,
    /// Nodes that reached what the cluster asks for.
    pub ready: u32,
    /// GPU+NIC pairs admitted on all nodes.
    pub pairs: u32,
    /// Nodes that are not ready and why, the first hundred by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub nodes: Vec<NodeSummary>,
    /// Which slot has which rail, for each hardware layout that was seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["hash"]))]
    pub rail_layouts: Vec<RailLayout>,
    /// `Ready`, `Progressing`, `Degraded`, `Conflict`, `NotYetSupported`, `Paused`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
}

/// One node in a cluster's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// Node name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Reason, a condition reason of the node.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// What is wrong and what to do.
    #[schemars(length(max = 512))]
    pub message: String,
}

/// Compute NICs of machines that are built alike, and their rails. Kept once it is made: a node whose NIC is missing has a
/// hole there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RailLayout {
    /// Hash over products and slots.
    #[schemars(length(max = 64))]
    pub hash: String,
    /// The NICs, in the order of their PCI addresses.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pci"]))]
    pub slots: Vec<RailSlot>,
}

/// Rail of one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RailSlot {
    /// PCI address.
    #[schemars(length(max = 16))]
    pub pci: String,
    /// PCI vendor and device, `15b3:1021`.
    #[schemars(length(max = 16))]
    pub product: String,
    /// The rail.
    #[schemars(range(max = 63))]
    pub rail: u32,
}
