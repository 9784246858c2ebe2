//! What is asked of the host around the NICs: PCIe, firmware, firewall, RDMA namespaces.

use super::{Plan, World};

pub(super) fn plan(_plan: &mut Plan, _world: &World<'_>) {}
