//! The fields of a machine file, as they are written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Completeness;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) source: Source,
    pub(super) facts: Facts,
    pub(super) gpus: Vec<Gpu>,
    pub(super) nics: Vec<Nic>,
    pub(super) matrix: Option<Matrix>,
    pub(super) pcie_tree: Tree,
    #[serde(default)]
    pub(super) closest_nics: BTreeMap<String, Closest>,
}

#[derive(Deserialize)]
pub(super) struct Source {
    pub(super) kind: String,
}

#[derive(Deserialize)]
pub(super) struct Facts {
    #[serde(rename = "virtual")]
    pub(super) is_virtual: serde_yaml::Value,
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Gpu {
    pub(super) index: usize,
    pub(super) product: Option<String>,
    pub(super) pci: Option<String>,
    pub(super) numa: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct Nic {
    pub(super) index: usize,
    pub(super) rdma: Option<String>,
    pub(super) pci: Option<String>,
    pub(super) numa: Option<i64>,
    pub(super) link_layer: Option<String>,
    #[serde(default)]
    pub(super) bond: bool,
    pub(super) speed_mbps: Option<u64>,
    pub(super) port_state: Option<String>,
    pub(super) port: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Matrix {
    pub(super) order: Vec<String>,
    pub(super) rows: BTreeMap<String, Vec<Option<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tree {
    pub(super) completeness: Completeness,
    #[serde(default)]
    pub(super) nodes: Vec<Node>,
}

#[derive(Deserialize)]
pub(super) struct Node {
    pub(super) pci: String,
    pub(super) parent: Option<String>,
    pub(super) kind: String,
    pub(super) numa: Option<i64>,
    pub(super) class: Option<String>,
    pub(super) vendor: Option<String>,
    pub(super) device: Option<String>,
    pub(super) host_bridge: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Closest {
    pub(super) distance: Option<String>,
    #[serde(default)]
    pub(super) nics: Vec<String>,
}
