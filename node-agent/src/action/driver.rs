//! Changes of the RDMA driver and of what makes GPU memory reachable for it. Pure.

use crds::node::Cost;
use serde::{Deserialize, Serialize};

use super::{Explain, Lasts};

/// A change of the RDMA driver and of what makes GPU memory reachable for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DriverChange {}

impl Explain for DriverChange {
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
