//! Which other advertisers were seen, and when one may be forgotten. Pure; part of the partition's file.
//!
//! The kubelet leaves unhealthy devices out, and has none at all until a plugin has registered again: one answer without
//! an advertiser does not say that it is gone. It is forgotten once answers that prove absence, of one and the same
//! kubelet, have lacked it for six minutes; within five a kubelet forgets a plugin that does not come back.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{DriverGpu, Seen};
use crate::evidence::Evidence;

/// Domain of the resources of NVIDIA's plugin.
const NVIDIA: &str = "nvidia.com/";
/// What it advertises unless it is told otherwise.
const NVIDIA_GPU: &str = "nvidia.com/gpu";
/// How long an advertiser must have been absent.
const FORGET: SignedDuration = SignedDuration::from_mins(6);

/// Resource → UUID → since when it is absent; `null` while it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ForeignMemory(BTreeMap<String, BTreeMap<String, Option<Absence>>>);

/// Answers that lack an advertiser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Absence {
    /// The first of them.
    since: Time,
    /// Socket of the kubelet that gave them.
    kubelet: String,
}

impl ForeignMemory {
    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Resource and UUID of every advertiser that is not forgotten yet.
    pub fn entries(&self) -> impl Iterator<Item = (&String, &String)> {
        let entries = self.0.iter();
        entries.flat_map(|(resource, gpus)| gpus.keys().map(move |uuid| (resource, uuid)))
    }

    /// What is remembered after the answer at `now`, which showed `seen`.
    #[must_use]
    pub fn step(&self, seen: &Seen, evidence: &Evidence, now: Timestamp) -> Self {
        let mut next = match evidence.complete().and(evidence.socket()) {
            Some(kubelet) => self.without_shown(&kubelet.to_string(), now),
            None => self.clone(),
        };
        for (uuid, resources) in seen {
            for resource in resources.keys() {
                next.note(resource, uuid, None);
            }
        }
        next
    }

    /// The same without NVIDIA's plugin, which the operator has switched off: what `seen` does not show of it is gone, once
    /// the kubelet's answer proves absence and nothing of it listens any more.
    #[must_use]
    pub fn without_nvidia(mut self, seen: &Seen, evidence: &Evidence) -> Self {
        if evidence.complete().is_none() || !evidence.plugins().is_empty() {
            return self;
        }
        for (resource, gpus) in &mut self.0 {
            let shown = |uuid: &String| {
                seen.get(uuid)
                    .is_some_and(|shown| shown.contains_key(resource))
            };
            if resource.starts_with(NVIDIA) {
                gpus.retain(|uuid, _| shown(uuid));
            }
        }
        self.0.retain(|_, gpus| !gpus.is_empty());
        self
    }

    /// The same with NVIDIA's plugin, which the operator is about to switch on again.
    #[must_use]
    pub fn with_nvidia(mut self, gpus: &[DriverGpu]) -> Self {
        for gpu in gpus {
            self.note(NVIDIA_GPU, &gpu.uuid, None);
        }
        self
    }

    /// What is remembered after an answer of `kubelet` that shows no other advertiser at all.
    fn without_shown(&self, kubelet: &str, now: Timestamp) -> Self {
        let mut next = Self::default();
        for (resource, gpus) in &self.0 {
            for (uuid, absent) in gpus {
                let absent = Absence::after(absent.as_ref(), kubelet, now);
                if !absent.is_over(now) {
                    next.note(resource, uuid, Some(absent));
                }
            }
        }
        next
    }

    fn note(&mut self, resource: &str, uuid: &str, absent: Option<Absence>) {
        let gpus = self.0.entry(resource.to_owned()).or_default();
        gpus.insert(uuid.to_owned(), absent);
    }
}

impl Absence {
    /// The absence after one more answer without the advertiser. Another kubelet, or a clock that was set back, starts
    /// it again.
    fn after(before: Option<&Self>, kubelet: &str, now: Timestamp) -> Self {
        let goes_on = |absent: &&Self| absent.kubelet == kubelet && absent.since.0 <= now;
        before.filter(goes_on).cloned().unwrap_or_else(|| Self {
            since: Time(now),
            kubelet: kubelet.to_owned(),
        })
    }

    /// The first answer that lacks the advertiser is not the last: time has passed between two.
    fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.since.0) >= FORGET
    }
}

#[cfg(test)]
mod tests;
