use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Merged, Partition, PartitionDevice, PartitionError, merge, partition};
use crate::distance::Distance;
use crate::fact::Fact;
use crate::machine::{Machine, NicRole, PciFunction, PciKind, PciParent};
use crate::policy::{NicSharing, ResourceKind, ResourcePolicy};
use crate::test_machines::{gpu, limit, machine, nic};

fn policy(kind: ResourceKind) -> ResourcePolicy {
    let name = match kind {
        ResourceKind::Pair => "rdma/gpudirect",
        ResourceKind::Gpu => "rdma/gpu",
        ResourceKind::SharedNic => "rdma/shared",
    };
    ResourcePolicy {
        name: name.to_owned(),
        kind,
        replicas: 2,
        ..ResourcePolicy::default()
    }
}

fn all() -> Vec<ResourcePolicy> {
    [
        ResourceKind::Pair,
        ResourceKind::Gpu,
        ResourceKind::SharedNic,
    ]
    .map(policy)
    .to_vec()
}

fn compute(machine: &Machine, policies: &[ResourcePolicy]) -> Partition {
    partition(machine, &machine.paths(), policies).unwrap()
}

/// GPU0 and mlx5_0 in one slot, GPU1 and mlx5_1 in another.
fn two_pairs() -> Machine {
    let mut machine = Machine::default();
    for (index, root) in ["0000:01", "0000:02"].iter().enumerate() {
        let at = |function: u8| format!("{root}:00.{function}").parse().unwrap();
        let mut gpu = gpu(index, Some(at(0)));
        gpu.uuid = Fact::Known(format!("GPU-{index}"));
        gpu.numa = Fact::Known(0);
        machine.gpus.push(gpu);
        let mut nic = nic(index, Some(at(1)));
        nic.numa = Fact::Known(0);
        machine.nics.push(nic);
        let port: crate::pci::PciAddress = format!("0000:00:0{}.0", index + 1).parse().unwrap();
        for (address, parent, kind) in [
            (
                port,
                PciParent::HostBridge("pci0000:00".to_owned()),
                PciKind::RootPort,
            ),
            (at(0), PciParent::Bridge(port), PciKind::Gpu),
            (at(1), PciParent::Bridge(port), PciKind::Nic),
        ] {
            let numa = Fact::Known(0);
            let function = PciFunction {
                parent,
                kind,
                numa,
                class: Fact::Absent,
                vendor: Fact::Absent,
                device: Fact::Absent,
            };
            machine.functions.insert(address, function);
        }
    }
    machine
}

fn devices<'a>(partition: &'a Partition, resource: &str) -> Vec<&'a PartitionDevice> {
    partition
        .resources
        .iter()
        .filter(|r| r.name == resource)
        .flat_map(|r| &r.devices)
        .collect()
}

fn ids(partition: &Partition, resource: &str) -> Vec<String> {
    devices(partition, resource)
        .iter()
        .map(|device| device.id.clone())
        .collect()
}

#[test]
fn every_gpu_is_in_one_resource_and_storage_nics_are_shared() {
    let mut machine = two_pairs();
    machine.nics[1].role = NicRole::Storage;
    let policies: Vec<_> = all()
        .into_iter()
        .map(|p| ResourcePolicy {
            nic_sharing: NicSharing::Never,
            ..p
        })
        .collect();
    let partition = compute(&machine, &policies);
    assert_eq!(ids(&partition, "rdma/gpudirect"), ["GPU-0"]);
    assert_eq!(ids(&partition, "rdma/gpu"), ["GPU-1"]);
    assert_eq!(
        ids(&partition, "rdma/shared"),
        ["0000:02:00.1-0", "0000:02:00.1-1"]
    );
}

#[test]
fn without_a_resource_for_them_gpus_are_left_over_and_said() {
    let mut machine = two_pairs();
    machine.nics.pop();
    let policies = [ResourcePolicy {
        nic_sharing: NicSharing::Never,
        ..policy(ResourceKind::Pair)
    }];
    let partition = compute(&machine, &policies);
    assert_eq!(partition.left_over[0].gpu, "GPU-1");
    assert!(
        partition.left_over[0]
            .reason
            .contains("no resource of kind Gpu"),
        "{}",
        partition.left_over[0].reason
    );
}

#[test]
fn without_a_driver_the_id_is_the_pci_address() {
    let mut machine = two_pairs();
    machine.gpus[0].uuid = Fact::Unreadable("no driver".to_owned());
    assert_eq!(
        ids(&compute(&machine, &all()), "rdma/gpudirect"),
        ["0000:01:00.0", "GPU-1"]
    );
}

#[test]
fn two_devices_of_one_function_keep_apart() {
    let mut machine = two_pairs();
    machine.gpus.clear();
    machine.nics[1].pci = machine.nics[0].pci;
    let partition = compute(
        &machine,
        &[ResourcePolicy {
            replicas: 1,
            ..policy(ResourceKind::SharedNic)
        }],
    );
    assert_eq!(
        ids(&partition, "rdma/shared"),
        ["0000:01:00.1/mlx5_0-0", "0000:01:00.1/mlx5_1-0"]
    );
}

#[test]
fn policies_that_make_no_partition_are_refused() {
    let machine = two_pairs();
    let paths = machine.paths();
    let error = |policies: &[ResourcePolicy]| partition(&machine, &paths, policies).unwrap_err();
    let pair = policy(ResourceKind::Pair);
    let other = ResourcePolicy {
        name: "rdma/other".to_owned(),
        ..pair.clone()
    };
    assert!(matches!(
        error(&[pair.clone(), other]),
        PartitionError::TwoOfKind {
            kind: ResourceKind::Pair,
            ..
        }
    ));
    assert!(matches!(
        error(&[pair.clone(), pair.clone()]),
        PartitionError::DuplicateName(_)
    ));
    let zero = error(&[ResourcePolicy {
        nics_per_gpu: 0,
        ..pair.clone()
    }])
    .to_string();
    assert!(
        zero.contains("nicsPerGpu") && zero.contains("rdma/gpudirect"),
        "{zero}"
    );
    assert!(matches!(
        error(&[ResourcePolicy {
            replicas: 0,
            ..pair
        }]),
        PartitionError::Zero {
            field: "replicas",
            ..
        }
    ));
    let mut twins = two_pairs();
    twins.gpus[1].uuid = twins.gpus[0].uuid.clone();
    let error = partition(&twins, &twins.paths(), &all()).unwrap_err();
    assert_eq!(error, PartitionError::DuplicateId("GPU-0".to_owned()));
}

fn busy(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(ToString::to_string).collect()
}

#[test]
fn a_free_device_changes_its_resource_and_a_busy_one_waits() {
    let machine = two_pairs();
    let previous = compute(&machine, &all());
    let mut other = policy(ResourceKind::Pair);
    other.name = "nvidia.com/gpu".to_owned();
    let Merged {
        partition,
        deferred,
    } = merge(&previous, compute(&machine, &[other]), &busy(&["GPU-1"]));
    assert_eq!(ids(&partition, "nvidia.com/gpu"), ["GPU-0"]);
    assert_eq!(ids(&partition, "rdma/gpudirect"), ["GPU-1"]);
    assert_eq!(deferred.len(), 1);
    assert!(
        deferred[0]
            .reason
            .contains("GPU-1 of rdma/gpudirect is in use"),
        "{}",
        deferred[0].reason
    );
}

#[test]
fn partners_change_only_when_both_pairs_are_free() {
    let machine = two_pairs();
    let previous = compute(&machine, &all());
    let mut wanted = previous.clone();
    let devices = &mut wanted
        .resources
        .iter_mut()
        .find(|r| r.name == "rdma/gpudirect")
        .unwrap()
        .devices;
    let first = devices[0].nics.clone();
    devices[0].nics = devices[1].nics.clone();
    devices[1].nics = first;
    for held in ["GPU-0", "GPU-1"] {
        let merged = merge(&previous, wanted.clone(), &busy(&[held]));
        assert_eq!(merged.partition, previous);
        assert_eq!(merged.deferred.len(), 2);
    }
    let merged = merge(&previous, wanted.clone(), &busy(&[]));
    assert_eq!((merged.partition, merged.deferred.len()), (wanted, 0));
}

#[test]
fn a_device_that_somebody_else_holds_is_not_taken_over() {
    let machine = two_pairs();
    let none = Partition::default();
    let merged = merge(&none, compute(&machine, &all()), &busy(&["GPU-0"]));
    assert_eq!(ids(&merged.partition, "rdma/gpudirect"), ["GPU-1"]);
    assert_eq!(merged.deferred[0].id, "GPU-0");
}

#[test]
fn missing_hardware_keeps_its_slot_and_returns_to_it() {
    let machine = two_pairs();
    let previous = compute(&machine, &all());
    let mut broken = machine.clone();
    broken.nics.remove(0);
    let merged = merge(&previous, compute(&broken, &all()), &busy(&[]));
    let kept = devices(&merged.partition, "rdma/gpudirect");
    assert_eq!(
        (kept[0].id.as_str(), kept[0].missing.as_slice()),
        ("GPU-0", &["mlx5_0".to_owned()][..])
    );
    assert_eq!(kept[1].nics[0].name, "mlx5_1");
    assert!(!kept[1].shared);
    let healed = merge(&merged.partition, compute(&machine, &all()), &busy(&[]));
    assert_eq!((healed.partition, healed.deferred.len()), (previous, 0));
}

#[test]
fn a_replaced_gpu_takes_the_place_of_the_old_one() {
    let machine = two_pairs();
    let previous = compute(&machine, &all());
    let mut replaced = machine.clone();
    replaced.gpus[0].uuid = Fact::Known("GPU-new".to_owned());
    let merged = merge(&previous, compute(&replaced, &all()), &busy(&[]));
    assert_eq!(
        ids(&merged.partition, "rdma/gpudirect"),
        ["GPU-1", "GPU-new"]
    );
    assert!(
        devices(&merged.partition, "rdma/gpudirect")
            .iter()
            .all(|device| device.missing.is_empty())
    );
}

#[test]
fn a_resource_changes_its_kind_as_a_whole() {
    let machine = two_pairs();
    let previous = compute(&machine, &[policy(ResourceKind::Pair)]);
    let gpus = ResourcePolicy {
        kind: ResourceKind::Gpu,
        ..policy(ResourceKind::Pair)
    };
    let wanted = compute(&machine, &[gpus]);
    let merged = merge(&previous, wanted.clone(), &busy(&["GPU-0"]));
    assert_eq!(merged.partition.resources, previous.resources);
    assert_eq!(
        merge(&previous, wanted.clone(), &busy(&[]))
            .partition
            .resources,
        wanted.resources
    );
}

#[test]
fn a_partition_survives_its_serialisation() {
    let partition = compute(&two_pairs(), &all());
    let text = serde_json::to_string(&partition).unwrap();
    assert_eq!(serde_json::from_str::<Partition>(&text).unwrap(), partition);
}

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
            current = merge(&current, wanted, &ids).partition;
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

    #[test]
    fn slots_never_shift(machine in machine(6..=6, 6..=6), steps in proptest::collection::vec(step(), 1..6)) {
        let mut current = Partition::default();
        for step in steps {
            let merged = merge(&current, wanted(&machine, &step), &BTreeSet::new()).partition;
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
