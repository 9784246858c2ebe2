//! Changes of the host around the NICs: PCIe, firmware, firewall, RDMA namespaces. Pure.

use crds::node::Cost;
use serde::{Deserialize, Serialize};

use super::{Explain, Lasts};

/// A change of the host around the NICs: PCIe, firmware, firewall, RDMA namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TuningChange {}

impl Explain for TuningChange {
    fn kind(&self) -> &'static str {
        match *self {}
    }

    fn target(&self) -> String {
        match *self {}
    }

    fn desired(&self) -> String {
        match *self {}
    }

    fn cost(&self) -> Cost {
        match *self {}
    }

    fn lasts(&self) -> Lasts {
        match *self {}
    }

    fn effect(&self) -> String {
        match *self {}
    }

    fn verification(&self) -> String {
        match *self {}
    }
}
