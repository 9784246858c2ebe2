//! The single owner of what the plugin believes: joins the node file, the ports and the owners of uverbs devices into
//! [`Snapshot`]s and publishes those that differ. Everybody else only reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use topology::node_file::{NodeDevice, NodeNic};

use crate::accept::{Raw, Source};
use crate::knowledge::{Knowledge, Known};
use crate::link::{self, Link, Patience, Sightings};
use crate::owners::Owners;
use crate::ports::{self, Wanted};
use crate::resource::{Plan, Resource, Snapshot, Troubles};
use crate::verbs::{self, Owned};

/// Time between two looks at the owners of uverbs devices, unless the node file changes.
const OWNERS: Duration = Duration::from_secs(1);
/// So many uverbs devices are looked at sooner than a thread is there.
const AT_ONCE: usize = 32;

/// Resource name and device id.
type DeviceKey = (String, String);

/// What the node file says of a uverbs device: its number, RDMA device and PCI function.
type Claim = (u32, String, Option<String>);

/// State of the one task that writes.
pub(crate) struct Keeper {
    source: Source,
    owners: Arc<Owners>,
    quiet: Duration,
    started: Instant,
    raw: Option<Raw>,
    knowledge: Knowledge,
    plans: BTreeMap<String, Arc<Plan>>,
    links: BTreeMap<DeviceKey, Link>,
    looked: Option<Duration>,
    /// Claims that are wrong, and why, until they are seen to be right or the node file makes others.
    wrong: BTreeMap<Claim, String>,
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
    pub(crate) fn new(source: Source, owners: Arc<Owners>, quiet: Duration, wires: Wires) -> Self {
        Self {
            source,
            owners,
            quiet,
            started: Instant::now(),
            raw: None,
            knowledge: Knowledge::default(),
            plans: BTreeMap::new(),
            links: BTreeMap::new(),
            looked: None,
            wrong: BTreeMap::new(),
            wires,
        }
    }

    /// Runs until nobody wakes it any more.
    pub(crate) async fn run(mut self) {
        loop {
            self.turn(self.started.elapsed()).await;
            let woken = tokio::select! {
                changed = self.wires.pulses.changed() => changed,
                changed = self.wires.sightings.changed() => changed,
            };
            if woken.is_err() {
                return;
            }
        }
    }

    async fn turn(&mut self, now: Duration) {
        self.learn(now);
        self.refresh_plans();
        self.ask_for_ports();
        self.step_links(now);
        self.look_at_owners(now).await;
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
        self.looked = None;
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
        let wanted = ports::wanted(self.devices());
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

    /// A device that is another's now turns Unhealthy at once, so that the kubelet does not ask for it. Hundreds of devices
    /// take a while: they are looked at on a thread of their own, and calls are answered meanwhile.
    async fn look_at_owners(&mut self, now: Duration) {
        let looked = |at| now.saturating_sub(at) < OWNERS;
        if self.looked.is_some_and(looked) {
            return;
        }
        self.looked = Some(now);
        let nics = self.devices().flat_map(|device| &device.nics);
        let claims = nics.filter_map(|nic| Some((claim(nic)?, nic.clone())));
        let claims: BTreeMap<Claim, NodeNic> = claims.collect();
        let owners = self.owners.clone();
        let judged = if claims.len() <= AT_ONCE {
            judge(claims, &owners)
        } else {
            let judged = tokio::task::spawn_blocking(move || judge(claims, &owners));
            let Ok(judged) = judged.await else { return };
            judged
        };
        let wrong = judged.into_iter().filter_map(|(claim, owned)| {
            let why = match owned {
                Owned::Own => None,
                Owned::Others(why) => Some(why),
                Owned::Unknown => self.wrong.get(&claim).cloned(),
            };
            why.map(|why| (claim, why))
        });
        self.wrong = wrong.collect();
    }

    fn devices(&self) -> impl Iterator<Item = &NodeDevice> {
        let resources = self.knowledge.resources.values();
        resources.flat_map(|known| &known.spec.devices)
    }

    /// Why a device node of the device is not to be handed out.
    fn others(&self, device: &NodeDevice) -> Option<String> {
        let mut claims = device.nics.iter().filter_map(claim);
        claims.find_map(|claim| self.wrong.get(&claim).cloned())
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
            let withdrawn = self.knowledge.trouble(known, device);
            let others = || self.others(device);
            if let Some(why) = withdrawn.or_else(others).or_else(down) {
                troubles.insert(device.id.clone(), why);
            }
        }
        troubles
    }
}

/// Asks the host about each claim.
fn judge(claims: BTreeMap<Claim, NodeNic>, owners: &Owners) -> Vec<(Claim, Owned)> {
    let owner = |number| owners.owner(number);
    let judged = claims.into_iter();
    judged
        .map(|(claim, nic)| (claim, verbs::judge(&nic, owner)))
        .collect()
}

fn claim(nic: &NodeNic) -> Option<Claim> {
    Some((nic.uverbs?, nic.rdma.clone(), nic.pci.clone()))
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
