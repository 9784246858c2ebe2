//! What is asked of RDMA ports and network interfaces.

use super::{Plan, World};

pub(super) fn plan(_plan: &mut Plan, _world: &World<'_>) {}
