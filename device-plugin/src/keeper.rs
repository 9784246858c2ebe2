//! The single owner of what the plugin believes: joins the node file and the ports into [`Snapshot`]s and publishes
//! those that differ. Everybody else only reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::accept::{Raw, Source};
use crate::knowledge::{Knowledge, Known};
use crate::link::{self, Link, Patience, Sightings};
use crate::ports::{self, Wanted};
use crate::resource::{Plan, Resource, Snapshot, Troubles};

/// Resource name and device id.
type DeviceKey = (String, String);

/// State of the one task that writes.
pub(crate) struct Keeper {
    source: Source,
    quiet: Duration,
    started: Instant,
    raw: Option<Raw>,
    knowledge: Knowledge,
    plans: BTreeMap<String, Arc<Plan>>,
    links: BTreeMap<DeviceKey, Link>,
    wires: Wires,
}

/// The channels of the keeper.
pub(crate) struct Wires {
    /// Wakes at changes of the node file.
    pub(crate) pulses: watch::Receiver<u64>,
    /// What the ports show.
    pub(crate) sightings: watch::Receiver<Arc<Sightings>>,
    /// Which ports to look at.
    pub(crate) wanted: watch::Sender<Arc<Wanted>>,
    /// What is true now.
    pub(crate) snapshots: watch::Sender<Arc<Snapshot>>,
}

impl Keeper {
    pub(crate) fn new(source: Source, quiet: Duration, wires: Wires) -> Self {
        Self {
            source,
            quiet,
            started: Instant::now(),
            raw: None,
            knowledge: Knowledge::default(),
            plans: BTreeMap::new(),
            links: BTreeMap::new(),
            wires,
        }
    }

    /// Runs until nobody wakes it any more.
    pub(crate) async fn run(mut self) {
        loop {
            self.turn(self.started.elapsed());
            let woken = tokio::select! {
                changed = self.wires.pulses.changed() => changed,
                changed = self.wires.sightings.changed() => changed,
            };
            if woken.is_err() {
                return;
            }
        }
    }

    fn turn(&mut self, now: Duration) {
        self.learn(now);
        self.refresh_plans();
        self.ask_for_ports();
        self.step_links(now);
        self.publish();
    }

    fn learn(&mut self, now: Duration) {
        let raw = self.source.fetch();
        let before = std::mem::take(&mut self.knowledge);
        if self.raw.as_ref() == Some(&raw) {
            self.knowledge = before.forget(now, self.quiet);
            return;
        }
        let (withdrawn, problem) = (before.withdrawn.clone(), before.problem.clone());
        self.knowledge = before.learn(raw.judge(), now, self.quiet);
        self.raw = Some(raw);
        self.tell(withdrawn.as_ref(), problem.as_ref());
    }

    fn tell(&self, withdrawn: Option<&String>, problem: Option<&String>) {
        let path = self.source.node_file.display();
        match (&self.knowledge.withdrawn, &self.knowledge.problem) {
            (_, Some(why)) if Some(why) != problem => {
                tracing::error!(%path, "node file not taken, the last good one stays in force: {why}");
            }
            (Some(why), None) if Some(why) != withdrawn => {
                tracing::warn!(%path, "all devices are withdrawn: {why}");
            }
            (None, None) => {
                tracing::info!(%path, resources = self.knowledge.resources.len(), "node file taken");
            }
            _ => {}
        }
    }

    fn refresh_plans(&mut self) {
        let mut old = std::mem::take(&mut self.plans);
        for (name, known) in &self.knowledge.resources {
            let kept = old.remove(name).filter(|plan| *plan.spec() == known.spec);
            let plan = kept.unwrap_or_else(|| Arc::new(Plan::new(known.spec.clone())));
            self.plans.insert(name.clone(), plan);
        }
    }

    fn ask_for_ports(&self) {
        let devices = self
            .knowledge
            .resources
            .values()
            .flat_map(|known| &known.spec.devices);
        let wanted = ports::wanted(devices);
        self.wires.wanted.send_if_modified(|old| {
            let changed = **old != wanted;
            if changed {
                *old = Arc::new(wanted);
            }
            changed
        });
    }

    fn step_links(&mut self, now: Duration) {
        let sightings = self.wires.sightings.borrow_and_update().clone();
        let mut links = BTreeMap::new();
        for (name, known) in &self.knowledge.resources {
            let patience = Patience::from(&known.spec);
            for device in &known.spec.devices {
                let key = (name.clone(), device.id.clone());
                let before = self.links.get(&key).copied().unwrap_or_default();
                let after = before.step(link::device(device, &sightings), now, patience);
                links.insert(key, after);
            }
        }
        self.links = links;
    }

    fn publish(&self) {
        let new = self.snapshot();
        self.wires.snapshots.send_if_modified(|old| {
            let changed = **old != new;
            if changed {
                tell_health(old, &new);
                *old = Arc::new(new);
            }
            changed
        });
    }

    fn snapshot(&self) -> Snapshot {
        let resources = self.knowledge.resources.iter().filter_map(|(name, known)| {
            let plan = self.plans.get(name)?.clone();
            Some((
                name.clone(),
                Arc::new(Resource::new(plan, self.troubles(name, known))),
            ))
        });
        Snapshot {
            resources: resources.collect(),
        }
    }

    fn troubles(&self, name: &str, known: &Known) -> Troubles {
        let mut troubles = Troubles::new();
        for device in &known.spec.devices {
            let link = self
                .links
                .get(&(name.to_owned(), device.id.clone()))
                .copied()
                .unwrap_or_default();
            let held = known.spec.hold_down_seconds;
            let down = || {
                (known.spec.unhealthy_on_nic_down && link.is_down())
                    .then(|| format!("a NIC of it has no active port for {held} s or more"))
            };
            if let Some(why) = self.knowledge.trouble(known, device).or_else(down) {
                troubles.insert(device.id.clone(), why);
            }
        }
        troubles
    }
}

/// Logs every device whose health changed.
fn tell_health(old: &Snapshot, new: &Snapshot) {
    for (resource, now) in &new.resources {
        let none = Troubles::new();
        let before = old
            .resources
            .get(resource)
            .map_or(&none, |known| known.troubles());
        for (device, why) in now
            .troubles()
            .iter()
            .filter(|(id, why)| before.get(*id) != Some(why))
        {
            tracing::warn!(resource, device, "device is Unhealthy: {why}");
        }
        for device in before.keys().filter(|id| now.trouble(id).is_none()) {
            tracing::info!(resource, device, "device is Healthy again");
        }
    }
}

#[cfg(test)]
mod tests;
