//! What the kubelet may hand out behind the agent's back. Pure; [`crate::decide`] calls it.
//!
//! The plugin hears of a new node file at once and the kubelet of it from the plugin, but an allocation may be under way.
//! So a device counts as on offer until the node file has named it as not admitted for a while.

use std::collections::BTreeSet;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use topology::partition::Partition;

use crate::observed::Before;
use crate::settings::NODE_FILE;

/// How long an allocation may be under way after the node file was written.
pub const UNDER_WAY: SignedDuration = SignedDuration::from_secs(3);

/// Ids that may have been handed out since the kubelet was asked at `now` or later.
#[must_use]
pub fn offered(before: &Before, old: Option<&Partition>, now: Timestamp) -> BTreeSet<String> {
    if before.unusable.contains(NODE_FILE) {
        let resources = old.into_iter().flat_map(|partition| &partition.resources);
        let devices = resources.flat_map(|resource| &resource.devices);
        return devices.map(|device| device.id.clone()).collect();
    }
    let written = before.node_file_written;
    let heard = written.is_some_and(|written| now.duration_since(written) >= UNDER_WAY);
    let resources = before.node_file.iter().flat_map(|file| &file.resources);
    let devices = resources.flat_map(|resource| &resource.devices);
    devices
        .filter(|device| device.admitted || !heard)
        .map(|device| device.id.clone())
        .collect()
}

#[cfg(test)]
mod tests;
