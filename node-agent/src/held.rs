//! Which of our devices containers hold, as far as the kubelet's answer proves it. Pure; [`crate::decide`] calls it.

use std::collections::BTreeSet;

use topology::partition::Partition;

use crate::evidence::Evidence;

/// Ids of ours that containers hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    shown: BTreeSet<String>,
    complete: bool,
}

impl Held {
    /// What the answer says of our resources, called `names`.
    #[must_use]
    pub fn of(evidence: &Evidence, names: &BTreeSet<String>) -> Self {
        let names = names.iter().map(String::as_str);
        let shown = evidence.shown().map(|kubelet| kubelet.held_of(names));
        Self {
            shown: shown.unwrap_or_default(),
            complete: evidence.complete().is_some(),
        }
    }

    /// The same without what another plugin gave out under a name of ours: `old` never had such a device.
    #[must_use]
    pub fn known_to(self, old: &Partition, evidence: &Evidence) -> Self {
        let Some(kubelet) = evidence.shown() else {
            return self;
        };
        let resources = old.resources.iter().filter_map(|resource| {
            let held = kubelet.held.get(&resource.name)?;
            let ids = resource.devices.iter().map(|device| &device.id);
            Some(ids.filter(|id| held.contains_key(*id)).cloned())
        });
        Self {
            shown: resources.flatten().collect(),
            ..self
        }
    }

    /// All that are held; `None` where others may be held too.
    #[must_use]
    pub fn all(&self) -> Option<&BTreeSet<String>> {
        Some(&self.shown).filter(|_| self.complete)
    }

    /// All that may be held: without proof of absence, every device of `old` counts.
    #[must_use]
    pub fn may_include(&self, old: &Partition) -> BTreeSet<String> {
        let mut ids = self.shown.clone();
        if !self.complete {
            let devices = old.resources.iter().flat_map(|resource| &resource.devices);
            ids.extend(devices.map(|device| device.id.clone()));
        }
        ids
    }
}
