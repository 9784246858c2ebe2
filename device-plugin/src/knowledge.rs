//! What the plugin believes of the node, from one look at the node file to the next. Pure: a function of
//! (knowledge, reading, now); [`crate::keeper`] calls it.
//!
//! * A good file replaces what was known; a device that it no longer names stays as retired, Unhealthy, for a quiet time:
//!   the kubelet may still be working with such an id.
//! * A resource that it no longer names is closed at once: the kubelet itself keeps its devices for a while. Should it
//!   come back, it is registered anew, since another plugin may have had the name meanwhile.
//! * A file that is gone, or of another boot, withdraws everything. It says that nobody vouches for the devices.
//! * A file that cannot be read or parsed says nothing of the devices: the last good one stays in force.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use topology::node_file::{NodeDevice, NodeFile, NodeResource};

use crate::accept::Reading;

/// A resource of a file of this boot, now or before.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The resource, its retired devices included, in the order of the ids.
    pub spec: NodeResource,
    /// Retired devices and since when.
    pub retired: BTreeMap<String, Duration>,
}

/// All that is believed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Knowledge {
    /// Resources by name.
    pub resources: BTreeMap<String, Known>,
    /// Why nobody vouches for the devices.
    pub withdrawn: Option<String>,
    /// Why the last look at the file said nothing.
    pub problem: Option<String>,
}

impl Knowledge {
    /// What is believed after this reading at `now`; what was retired longer than `quiet` ago is forgotten.
    #[must_use]
    pub fn learn(mut self, reading: Reading, now: Duration, quiet: Duration) -> Self {
        match reading {
            Reading::Good(file) => return self.replace(*file, now).forget(now, quiet),
            Reading::Gone => {
                self.withdraw("there is no node file: the agent vouches for no device".to_owned());
            }
            Reading::OtherBoot { file, host } => {
                self.withdraw(format!(
                    "the node file is of boot {file}, the host is at boot {host}"
                ));
            }
            Reading::Unusable(why) => self.problem = Some(why),
        }
        self.forget(now, quiet)
    }

    fn withdraw(&mut self, why: String) {
        self.withdrawn = Some(why);
        self.problem = None;
    }

    fn replace(self, file: NodeFile, now: Duration) -> Self {
        let mut old = self.resources;
        let mut resources = BTreeMap::new();
        for spec in file.resources {
            let before = old.remove(&spec.name);
            resources.insert(spec.name.clone(), merge(spec, before.as_ref(), now));
        }
        Self {
            resources,
            withdrawn: None,
            problem: None,
        }
    }

    /// The same without what was retired longer than `quiet` ago.
    #[must_use]
    pub fn forget(mut self, now: Duration, quiet: Duration) -> Self {
        let over = |since: Duration| now.saturating_sub(since) >= quiet;
        for known in self.resources.values_mut() {
            known.retired.retain(|id, since| {
                let keep = !over(*since);
                if !keep {
                    known.spec.devices.retain(|device| device.id != *id);
                }
                keep
            });
        }
        self
    }

    /// Why a device of `known` cannot be handed out, as far as the node file tells.
    #[must_use]
    pub fn trouble(&self, known: &Known, device: &NodeDevice) -> Option<String> {
        if let Some(why) = &self.withdrawn {
            return Some(why.clone());
        }
        if known.retired.contains_key(&device.id) {
            return Some("no longer in the node file".to_owned());
        }
        (!device.admitted).then(|| format!("not admitted: {}", device.reason))
    }
}

/// The new resource, with the devices of the old one that it lacks.
fn merge(mut spec: NodeResource, before: Option<&Known>, now: Duration) -> Known {
    let mut retired = BTreeMap::new();
    let named: BTreeSet<String> = spec
        .devices
        .iter()
        .map(|device| device.id.clone())
        .collect();
    for device in before.into_iter().flat_map(|known| &known.spec.devices) {
        if !named.contains(&device.id) {
            let since = before.and_then(|known| known.retired.get(&device.id));
            retired.insert(device.id.clone(), since.copied().unwrap_or(now));
            spec.devices.push(device.clone());
        }
    }
    spec.devices.sort_by(|a, b| a.id.cmp(&b.id));
    Known { spec, retired }
}

#[cfg(test)]
mod tests;
