//! Random faults, configurations and allocations, one after the other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{compute, ids, policy};
use crate::distance::Distance;
use crate::machine::Machine;
use crate::partition::{Partition, PartitionDevice, merge};
use crate::policy::{NicSharing, ResourceKind, ResourcePolicy};
use crate::test_machines::{limit, machine};

/// One step of a node's life.
#[derive(Clone, Debug)]
struct Step {
    lost_gpus: Vec<bool>,
    lost_nics: Vec<bool>,
    limit: Distance,
    share: bool,
    kinds: Vec<bool>,
    nics_per_gpu: u32,
    rename: bool,
    take: Vec<bool>,
    release: Vec<bool>,
}

fn step() -> impl Strategy<Value = Step> {
    let bits = |probability: f64, count: usize| {
        proptest::collection::vec(proptest::bool::weighted(probability), count)
    };
    let faults = (bits(0.1, 6), bits(0.1, 6));
    let config = (
        limit(),
        any::<bool>(),
        bits(0.8, 3),
        1..3u32,
        proptest::bool::weighted(0.2),
    );
    (faults, config, bits(0.4, 24), bits(0.4, 24)).prop_map(
        |((lost_gpus, lost_nics), config, take, release)| {
            let (limit, share, kinds, nics_per_gpu, rename) = config;
            Step {
                lost_gpus,
                lost_nics,
                limit,
                share,
                kinds,
                nics_per_gpu,
                rename,
                take,
                release,
            }
        },
    )
}

fn wanted(machine: &Machine, step: &Step) -> Partition {
    let mut present = machine.clone();
    present.gpus.retain(|gpu| !step.lost_gpus[gpu.index]);
    present.nics.retain(|nic| !step.lost_nics[nic.index]);
    let kinds = [
        ResourceKind::Pair,
        ResourceKind::Gpu,
        ResourceKind::SharedNic,
    ];
    let policies = kinds
        .into_iter()
        .zip(&step.kinds)
        .filter(|(_, on)| **on)
        .map(|(kind, _)| {
            let nic_sharing = if step.share {
                NicSharing::WhenScarce
            } else {
                NicSharing::Never
            };
            let mut policy = ResourcePolicy {
                max_distance: step.limit,
                nic_sharing,
                nics_per_gpu: step.nics_per_gpu,
                ..policy(kind)
            };
            if step.rename && kind == ResourceKind::Pair {
                policy.name = "nvidia.com/gpu".to_owned();
            }
            policy
        });
    compute(&present, &policies.collect::<Vec<_>>())
}

/// What a live container was given.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    gpu: Option<String>,
    nics: Vec<String>,
    shared: bool,
}

impl From<&PartitionDevice> for Held {
    fn from(device: &PartitionDevice) -> Self {
        let nics = device.nics.iter().map(|nic| nic.key.clone()).collect();
        Self {
            gpu: device.gpu.as_ref().map(|gpu| gpu.key.clone()),
            nics,
            shared: device.shared,
        }
    }
}

fn assert_no_conflict(held: &BTreeMap<String, Held>) {
    let entries: Vec<&Held> = held.values().collect();
    for (at, a) in entries.iter().enumerate() {
        for b in &entries[at + 1..] {
            assert!(
                a.gpu.is_none() || a.gpu != b.gpu,
                "one GPU in two live containers: {held:?}"
            );
            let common = a.nics.iter().any(|nic| b.nics.contains(nic));
            assert!(
                !common || (a.shared && b.shared),
                "an undeclared NIC in two live containers: {held:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_gives_one_device_to_two_containers(
        machine in machine(6..=6, 6..=6),
        steps in proptest::collection::vec(step(), 1..10),
    ) {
        let mut current = Partition::default();
        let mut held: BTreeMap<String, Held> = BTreeMap::new();
        for step in steps {
            let ids: BTreeSet<String> = held.keys().cloned().collect();
            let wanted = wanted(&machine, &step);
            current = merge(&current, wanted, &ids, &BTreeSet::new()).partition;
            let now: BTreeMap<String, &PartitionDevice> =
                current.resources.iter().flat_map(|r| &r.devices).map(|device| (device.id.clone(), device)).collect();
            let count: usize = current.resources.iter().map(|resource| resource.devices.len()).sum();
            prop_assert_eq!(now.len(), count, "an id in two resources");
            for (id, was) in &held {
                let is = now.get(id).map(|device| Held::from(*device));
                prop_assert_eq!(is.as_ref(), Some(was), "{} changed while in use", id);
            }
            let mut release = step.release.iter().cycle();
            held.retain(|_, _| !*release.next().unwrap());
            for ((id, device), take) in now.iter().zip(step.take.iter().cycle()) {
                if *take && device.missing.is_empty() && !held.contains_key(id) {
                    held.insert(id.clone(), Held::from(*device));
                }
            }
            assert_no_conflict(&held);
        }
    }

    /// The kubelet hands out what was on its list when the agent asked, while the agent still thinks.
    #[test]
    fn an_allocation_behind_the_agents_back_is_no_conflict(
        machine in machine(6..=6, 6..=6),
        steps in proptest::collection::vec(step(), 1..10),
    ) {
        let mut current = Partition::default();
        let mut listed: BTreeMap<String, Held> = BTreeMap::new();
        let mut held: BTreeMap<String, Held> = BTreeMap::new();
        for step in steps {
            let mut release = step.release.iter().cycle();
            held.retain(|_, _| !*release.next().unwrap());
            let answer: BTreeSet<String> = held.keys().cloned().collect();
            let offered: BTreeSet<String> = listed.keys().cloned().collect();
            let merged = merge(&current, wanted(&machine, &step), &answer, &offered);
            for ((id, device), take) in listed.iter().zip(step.take.iter().cycle()) {
                if *take && !held.contains_key(id) {
                    held.insert(id.clone(), device.clone());
                }
            }
            assert_no_conflict(&held);
            current = merged.partition;
            let devices = current.resources.iter().flat_map(|r| &r.devices);
            let free = devices.filter(|d| d.missing.is_empty() && !merged.changing.contains(&d.id));
            listed = free.map(|device| (device.id.clone(), Held::from(device))).collect();
        }
    }

    #[test]
    fn slots_never_shift(machine in machine(6..=6, 6..=6), steps in proptest::collection::vec(step(), 1..6)) {
        let mut current = Partition::default();
        for step in steps {
            let merged = merge(&current, wanted(&machine, &step), &BTreeSet::new(), &BTreeSet::new()).partition;
            for resource in &current.resources {
                let before: Vec<&String> = resource.devices.iter().map(|device| &device.id).collect();
                let after = ids(&merged, &resource.name);
                let stayed: Vec<&String> = after.iter().filter(|id| before.contains(id)).collect();
                let expected: Vec<&&String> = before.iter().filter(|id| after.contains(id)).collect();
                prop_assert_eq!(stayed.len(), expected.len());
                prop_assert!(stayed.iter().zip(expected).all(|(a, b)| a == b));
            }
            current = merged;
        }
    }
}
