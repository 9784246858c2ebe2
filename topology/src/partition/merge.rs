//! Brings a new partition into force without taking a device from under a live container.
//!
//! What changes is looked at in groups: devices, old and new, that have a GPU or NIC in common. A group changes as a
//! whole, and only when none of its devices is in use and nothing of it is missing; otherwise its old devices stay as
//! they are. So old and new holders of every part are free at once, and no part is ever in two devices.
//!
//! Between the kubelet's answer and the next list of devices it may hand an old device out. So a group whose old devices
//! are on offer changes hands in two turns: first they are taken off the list, and only what is still free after that
//! changes.

use std::collections::{BTreeMap, BTreeSet};

use super::{HardwareRef, Partition, PartitionDevice, ResourcePartition};

/// The partition to use, and what has to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// What holds now; persist this.
    pub partition: Partition,
    /// Changes that wait, by id.
    pub deferred: Vec<Deferred>,
    /// Devices that change once they are no longer on offer: do not admit them.
    pub changing: BTreeSet<String>,
}

/// A change that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deferred {
    /// The device.
    pub id: String,
    /// What it waits for.
    pub reason: String,
}

/// One device in its resource.
#[derive(Clone, Copy)]
struct Entry<'a> {
    resource: &'a ResourcePartition,
    device: &'a PartitionDevice,
    /// The resource changes its kind: all its devices change together.
    kind_changes: bool,
}

impl Entry<'_> {
    fn is_same(&self, other: &Entry<'_>) -> bool {
        let keys = |device: &PartitionDevice| {
            device
                .nics
                .iter()
                .map(|nic| nic.key.clone())
                .collect::<Vec<_>>()
        };
        let (a, b) = (self.device, other.device);
        let gpu = |device: &PartitionDevice| device.gpu.as_ref().map(|gpu| gpu.key.clone());
        self.resource.name == other.resource.name
            && self.resource.kind == other.resource.kind
            && (a.id == b.id && gpu(a) == gpu(b) && keys(a) == keys(b) && a.shared == b.shared)
    }

    /// What ties it to other devices. The address too: with and without a driver one GPU has two ids.
    fn ties(&self) -> Vec<String> {
        let hardware = self.device.gpu.iter().chain(&self.device.nics);
        let addresses = hardware
            .clone()
            .filter_map(|part| part.pci)
            .map(|pci| pci.to_string());
        let resource = self
            .kind_changes
            .then(|| format!("resource {}", self.resource.name));
        hardware
            .map(|part| part.key.clone())
            .chain(addresses)
            .chain(resource)
            .collect()
    }
}

/// Merges the partition that is wanted into the previous one. `busy` are the ids of devices that a container holds,
/// `offered` those that the kubelet could have handed out since it told who holds what.
#[must_use]
#[expect(
    clippy::needless_pass_by_value,
    reason = "it is used up: only the result holds"
)]
pub fn merge(
    previous: &Partition,
    wanted: Partition,
    busy: &BTreeSet<String>,
    offered: &BTreeSet<String>,
) -> Merged {
    let (old, new) = (entries(previous, &wanted), entries(&wanted, previous));
    let changed_old = unmatched(&old, &new);
    let changed_new = unmatched(&new, &old);
    let mut groups = Groups::default();
    for entry in changed_old.iter().chain(&changed_new) {
        groups.add(entry);
    }
    let mut blocked = in_use(&mut groups, changed_old.iter().chain(&changed_new), busy);
    for (group, reason) in incomplete(&mut groups, &changed_old, &wanted) {
        blocked.entry(group).or_insert(reason);
    }
    let changing = hand_over(&mut groups, &changed_old, offered, &mut blocked);
    let mut waits = |entry: &&Entry<'_>| blocked.contains_key(&groups.of(entry));
    let kept: Vec<Entry<'_>> = changed_old.iter().filter(&mut waits).copied().collect();
    let rejected: Vec<Entry<'_>> = changed_new.iter().filter(&mut waits).copied().collect();
    let deferred: BTreeSet<Deferred> = kept
        .iter()
        .chain(&rejected)
        .filter_map(|entry| deferral(&mut groups, &blocked, entry))
        .collect();
    let partition = assemble(previous, &wanted, &kept, &rejected);
    Merged {
        partition,
        deferred: deferred.into_iter().collect(),
        changing,
    }
}

fn deferral(
    groups: &mut Groups,
    blocked: &BTreeMap<String, String>,
    entry: &Entry<'_>,
) -> Option<Deferred> {
    let reason = blocked.get(&groups.of(entry))?.clone();
    Some(Deferred {
        id: entry.device.id.clone(),
        reason,
    })
}

fn entries<'a>(partition: &'a Partition, other: &Partition) -> Vec<Entry<'a>> {
    let of = |resource: &'a ResourcePartition| {
        let twin = other
            .resources
            .iter()
            .find(|twin| twin.name == resource.name);
        let kind_changes = twin.is_some_and(|twin| twin.kind != resource.kind);
        resource.devices.iter().map(move |device| Entry {
            resource,
            device,
            kind_changes,
        })
    };
    partition.resources.iter().flat_map(of).collect()
}

/// The entries of `these` that `others` do not have just so.
fn unmatched<'a>(these: &[Entry<'a>], others: &[Entry<'_>]) -> Vec<Entry<'a>> {
    let by_id: BTreeMap<(&str, &str), &Entry<'_>> = others
        .iter()
        .map(|entry| {
            (
                (entry.resource.name.as_str(), entry.device.id.as_str()),
                entry,
            )
        })
        .collect();
    let same = |entry: &Entry<'_>| {
        let twin = by_id.get(&(entry.resource.name.as_str(), entry.device.id.as_str()));
        twin.is_some_and(|twin| twin.is_same(entry))
    };
    these.iter().filter(|entry| !same(entry)).copied().collect()
}

/// Groups of devices that are tied to each other (union–find over what ties them).
#[derive(Default)]
struct Groups {
    above: BTreeMap<String, String>,
}

impl Groups {
    fn add(&mut self, entry: &Entry<'_>) {
        let ties = entry.ties();
        let Some(first) = ties.first().cloned() else {
            return;
        };
        for tie in ties {
            let (a, b) = (self.root(&first), self.root(&tie));
            if a != b {
                self.above.insert(a, b);
            }
        }
    }

    fn of(&mut self, entry: &Entry<'_>) -> String {
        let first = entry.ties().into_iter().next();
        first.map_or_else(|| entry.device.id.clone(), |tie| self.root(&tie))
    }

    fn root(&mut self, tie: &str) -> String {
        let mut at = tie.to_owned();
        while let Some(above) = self.above.get(&at) {
            at = above.clone();
        }
        if at != tie {
            self.above.insert(tie.to_owned(), at.clone());
        }
        at
    }
}

/// Group → the device of it that is in use.
fn in_use<'a, 'b: 'a>(
    groups: &mut Groups,
    changed: impl Iterator<Item = &'a Entry<'b>>,
    busy: &BTreeSet<String>,
) -> BTreeMap<String, String> {
    let mut blocked = BTreeMap::new();
    for entry in changed.filter(|entry| busy.contains(&entry.device.id)) {
        let reason = format!("{} of {} is in use", entry.device.id, entry.resource.name);
        blocked.entry(groups.of(entry)).or_insert(reason);
    }
    blocked
}

/// Group → the part of an old device of it that is missing.
fn incomplete(
    groups: &mut Groups,
    changed_old: &[Entry<'_>],
    wanted: &Partition,
) -> BTreeMap<String, String> {
    let mut blocked = BTreeMap::new();
    for entry in changed_old {
        if let Some(part) = missing(entry.device, wanted).first() {
            let id = &entry.device.id;
            let reason =
                format!("{part} of {id} is missing; its place is kept for when it comes back");
            blocked.entry(groups.of(entry)).or_insert(reason);
        }
    }
    blocked
}

/// Blocks the groups that could change but for a device on offer; tells all their old devices.
fn hand_over(
    groups: &mut Groups,
    changed_old: &[Entry<'_>],
    offered: &BTreeSet<String>,
    blocked: &mut BTreeMap<String, String>,
) -> BTreeSet<String> {
    let mut handing = BTreeSet::new();
    let on_offer = |entry: &&Entry<'_>| offered.contains(&entry.device.id);
    for entry in changed_old.iter().filter(on_offer) {
        let group = groups.of(entry);
        if !blocked.contains_key(&group) {
            handing.insert(group);
        }
    }
    for group in &handing {
        let reason = "changes hands: it is taken off the kubelet's list before its parts change";
        blocked.insert(group.clone(), reason.to_owned());
    }
    let of_these = |entry: &&Entry<'_>| handing.contains(&groups.of(entry));
    let changing = changed_old.iter().filter(of_these);
    changing.map(|entry| entry.device.id.clone()).collect()
}

/// What of a device is not there. A part whose address another one has now was replaced, and is not waited for.
fn missing(device: &PartitionDevice, wanted: &Partition) -> Vec<String> {
    let gpu = device.gpu.iter().filter_map(|gpu| missing_gpu(gpu, wanted));
    let absent = |nic: &&HardwareRef| {
        !wanted.present.contains_key(&nic.key) && occupant(nic, wanted).is_none()
    };
    let nics = device.nics.iter().filter(absent);
    gpu.chain(nics.map(|nic| nic.name.clone())).collect()
}

/// Without a driver a GPU has its address for a key, and nobody can say that it is another one than before: an id that
/// went from UUID to address and back would change hands at each reload of the driver.
fn missing_gpu(gpu: &HardwareRef, wanted: &Partition) -> Option<String> {
    if wanted.present.contains_key(&gpu.key) {
        return None;
    }
    match occupant(gpu, wanted) {
        None => Some(gpu.name.clone()),
        Some(key) if gpu.pci.is_some_and(|pci| pci.to_string() == *key) => {
            Some(format!("{} (no driver)", gpu.name))
        }
        Some(_) => None,
    }
}

/// Key of what is at the address of `part` now.
fn occupant<'a>(part: &HardwareRef, wanted: &'a Partition) -> Option<&'a String> {
    part.pci?;
    let mut present = wanted.present.iter();
    present
        .find(|(_, pci)| **pci == part.pci)
        .map(|(key, _)| key)
}

/// Old devices in their old order, each in its newest form; then the new ones.
fn assemble(
    previous: &Partition,
    wanted: &Partition,
    kept: &[Entry<'_>],
    rejected: &[Entry<'_>],
) -> Partition {
    let resource_names: BTreeSet<&String> = wanted
        .resources
        .iter()
        .map(|r| &r.name)
        .chain(kept.iter().map(|entry| &entry.resource.name))
        .collect();
    let resources = resource_names.into_iter().filter_map(|name| {
        let mut resource = header(previous, wanted, kept, name)?;
        resource.devices = slots(previous, wanted, kept, rejected, name);
        Some(resource)
    });
    Partition {
        resources: resources.collect(),
        present: wanted.present.clone(),
        left_over: still_left_over(wanted, kept),
    }
}

/// A GPU that its old resource keeps is not left over yet.
fn still_left_over(wanted: &Partition, kept: &[Entry<'_>]) -> Vec<super::LeftOver> {
    let kept = kept.iter().filter_map(|entry| entry.device.gpu.as_ref());
    let keys = |gpu: &HardwareRef| [Some(gpu.key.clone()), gpu.pci.map(|pci| pci.to_string())];
    let held: BTreeSet<String> = kept.flat_map(keys).flatten().collect();
    wanted
        .left_over
        .iter()
        .filter(|left| !held.contains(&left.gpu))
        .cloned()
        .collect()
}

fn header(
    previous: &Partition,
    wanted: &Partition,
    kept: &[Entry<'_>],
    name: &str,
) -> Option<ResourcePartition> {
    let by_name = |partition: &Partition| {
        partition
            .resources
            .iter()
            .find(|resource| resource.name == name)
            .cloned()
    };
    let still_old = kept.iter().any(|entry| entry.resource.name == name);
    let old = by_name(previous).filter(|_| still_old);
    old.or_else(|| by_name(wanted))
}

fn slots(
    previous: &Partition,
    wanted: &Partition,
    kept: &[Entry<'_>],
    rejected: &[Entry<'_>],
    name: &str,
) -> Vec<PartitionDevice> {
    let is_rejected = |id: &str| {
        rejected
            .iter()
            .any(|entry| entry.resource.name == name && entry.device.id == id)
    };
    let mut current: BTreeMap<&str, PartitionDevice> = BTreeMap::new();
    for device in resource_devices(wanted, name).filter(|device| !is_rejected(&device.id)) {
        current.insert(&device.id, device.clone());
    }
    for entry in kept.iter().filter(|entry| entry.resource.name == name) {
        let absent = missing(entry.device, wanted);
        current.insert(
            &entry.device.id,
            PartitionDevice {
                missing: absent,
                ..entry.device.clone()
            },
        );
    }
    let order = resource_devices(previous, name).chain(resource_devices(wanted, name));
    order
        .filter_map(|device| current.remove(device.id.as_str()))
        .collect()
}

fn resource_devices<'a>(
    partition: &'a Partition,
    name: &str,
) -> impl Iterator<Item = &'a PartitionDevice> {
    let resource = partition
        .resources
        .iter()
        .find(|resource| resource.name == name);
    resource
        .into_iter()
        .flat_map(|resource| resource.devices.iter())
}
