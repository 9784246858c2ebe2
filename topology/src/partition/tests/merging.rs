//! How a new partition comes into force.

use std::collections::BTreeSet;

use super::{all, compute, devices, ids, policy, two_pairs};
use crate::fact::Fact;
use crate::partition::{Merged, Partition, merge};
use crate::policy::{ResourceKind, ResourcePolicy};

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
        changing: _,
    } = merge(
        &previous,
        compute(&machine, &[other]),
        &busy(&["GPU-1"]),
        &busy(&[]),
    );
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
        let merged = merge(&previous, wanted.clone(), &busy(&[held]), &busy(&[]));
        assert_eq!(merged.partition, previous);
        assert_eq!(merged.deferred.len(), 2);
    }
    let merged = merge(&previous, wanted.clone(), &busy(&[]), &busy(&[]));
    assert_eq!((merged.partition, merged.deferred.len()), (wanted, 0));
}

#[test]
fn what_is_on_offer_changes_hands_in_two_turns() {
    let machine = two_pairs();
    let previous = compute(&machine, &all());
    let mut other = policy(ResourceKind::Pair);
    other.name = "nvidia.com/gpu".to_owned();
    let wanted = compute(&machine, &[other]);
    let first = merge(&previous, wanted.clone(), &busy(&[]), &busy(&["GPU-0"]));
    assert_eq!(ids(&first.partition, "rdma/gpudirect"), ["GPU-0"]);
    assert_eq!(ids(&first.partition, "nvidia.com/gpu"), ["GPU-1"]);
    assert_eq!(first.changing, busy(&["GPU-0"]));
    assert!(first.deferred[0].reason.contains("changes hands"));
    // It was handed out all the same: it stays as it is, and is no longer about to change.
    let taken = merge(
        &first.partition,
        wanted.clone(),
        &busy(&["GPU-0"]),
        &busy(&["GPU-0"]),
    );
    assert_eq!(
        (ids(&taken.partition, "rdma/gpudirect"), taken.changing),
        (vec!["GPU-0".to_owned()], busy(&[]))
    );
    let second = merge(&first.partition, wanted, &busy(&[]), &busy(&[]));
    assert_eq!(ids(&second.partition, "nvidia.com/gpu"), ["GPU-1", "GPU-0"]);
}

#[test]
fn a_device_that_somebody_else_holds_is_not_taken_over() {
    let machine = two_pairs();
    let none = Partition::default();
    let merged = merge(
        &none,
        compute(&machine, &all()),
        &busy(&["GPU-0"]),
        &busy(&[]),
    );
    assert_eq!(ids(&merged.partition, "rdma/gpudirect"), ["GPU-1"]);
    assert_eq!(merged.deferred[0].id, "GPU-0");
}

#[test]
fn missing_hardware_keeps_its_slot_and_returns_to_it() {
    let machine = two_pairs();
    let previous = compute(&machine, &all());
    let mut broken = machine.clone();
    broken.nics.remove(0);
    let merged = merge(&previous, compute(&broken, &all()), &busy(&[]), &busy(&[]));
    let kept = devices(&merged.partition, "rdma/gpudirect");
    assert_eq!(
        (kept[0].id.as_str(), kept[0].missing.as_slice()),
        ("GPU-0", &["mlx5_0".to_owned()][..])
    );
    assert_eq!(kept[1].nics[0].name, "mlx5_1");
    assert!(!kept[1].shared);
    let healed = merge(
        &merged.partition,
        compute(&machine, &all()),
        &busy(&[]),
        &busy(&[]),
    );
    assert_eq!((healed.partition, healed.deferred.len()), (previous, 0));
}

#[test]
fn a_replaced_gpu_takes_the_place_of_the_old_one() {
    let machine = two_pairs();
    let previous = compute(&machine, &all());
    let mut replaced = machine.clone();
    replaced.gpus[0].uuid = Fact::Known("GPU-new".to_owned());
    let merged = merge(
        &previous,
        compute(&replaced, &all()),
        &busy(&[]),
        &busy(&[]),
    );
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
fn a_gpu_without_its_driver_keeps_its_id() {
    let machine = two_pairs();
    let mut policies = all();
    policies.pop();
    let previous = compute(&machine, &policies);
    let mut unloaded = machine.clone();
    unloaded.gpus[0].uuid = Fact::Absent;
    let merged = merge(
        &previous,
        compute(&unloaded, &policies),
        &busy(&[]),
        &busy(&[]),
    );
    assert_eq!(ids(&merged.partition, "rdma/gpudirect"), ["GPU-0", "GPU-1"]);
    let kept = devices(&merged.partition, "rdma/gpudirect")[0];
    assert_eq!(kept.missing, ["GPU0 (no driver)"]);
    let loaded = merge(
        &merged.partition,
        compute(&machine, &policies),
        &busy(&[]),
        &busy(&[]),
    );
    assert_eq!((loaded.partition, loaded.deferred.len()), (previous, 0));
}

#[test]
fn a_gpu_that_gets_its_first_driver_takes_its_uuid_as_id() {
    let machine = two_pairs();
    let mut bare = machine.clone();
    bare.gpus[0].uuid = Fact::Absent;
    let merged = merge(
        &compute(&bare, &all()),
        compute(&machine, &all()),
        &busy(&[]),
        &busy(&[]),
    );
    assert_eq!(ids(&merged.partition, "rdma/gpudirect"), ["GPU-1", "GPU-0"]);
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
    let merged = merge(&previous, wanted.clone(), &busy(&["GPU-0"]), &busy(&[]));
    assert_eq!(merged.partition.resources, previous.resources);
    assert_eq!(
        merge(&previous, wanted.clone(), &busy(&[]), &busy(&[]))
            .partition
            .resources,
        wanted.resources
    );
}
