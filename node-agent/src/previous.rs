//! The partition that holds so far, from wherever it is to be had. Pure; [`crate::decide`] calls it.
//!
//! A NIC that is in a pair which a container holds must not go to another pair because a file was lost: the node file of
//! this boot tells which parts were handed out.

use std::collections::BTreeSet;

use topology::machine::Machine;
use topology::node_file::NodeFile;
use topology::partition::{Partition, restore};

use crate::observed::Observed;
use crate::settings::{NODE_FILE, PARTITION_FILE};

/// What holds so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Previous {
    /// This partition.
    Known(Partition),
    /// Nothing: the node is new, or its memory was taken away on purpose.
    Nothing,
    /// Nobody knows, and a container may hold a device: nothing new may be worked out.
    Lost,
}

impl Previous {
    /// The partition, where there is one.
    #[must_use]
    pub fn known(&self) -> Option<&Partition> {
        match self {
            Self::Known(partition) => Some(partition),
            Self::Nothing | Self::Lost => None,
        }
    }
}

/// What holds so far. `held` are the ids of ours that containers hold; `None` where that is not known.
#[must_use]
pub fn previous(
    observed: &Observed,
    machine: &Machine,
    held: Option<&BTreeSet<String>>,
) -> Previous {
    let before = &observed.before;
    if let Some(kept) = &before.kept {
        return Previous::Known(kept.partition.clone());
    }
    let lost = before.unusable.contains(PARTITION_FILE);
    let in_use = held.is_none_or(|held| !held.is_empty());
    match &before.node_file {
        Some(file) if lost && !describes(file, held) => Previous::Lost,
        // Who deletes the partition wants a new one, once nothing of the old one is in use.
        Some(file) if lost || in_use => Previous::Known(restore(file, machine)),
        // The plugin goes on with the last node file that it could read.
        None if lost && (in_use || before.unusable.contains(NODE_FILE)) => Previous::Lost,
        _ => Previous::Nothing,
    }
}

/// Whether the file tells the parts of every device that is held. One that was written while nobody knew them has none.
fn describes(file: &NodeFile, held: Option<&BTreeSet<String>>) -> bool {
    let devices = file.resources.iter().flat_map(|resource| &resource.devices);
    let ids: BTreeSet<&String> = devices.map(|device| &device.id).collect();
    held.map_or(!ids.is_empty(), |held| {
        held.iter().all(|id| ids.contains(id))
    })
}
