use super::{Partition, PartitionDevice, PartitionError, partition};
use crate::fact::Fact;
use crate::machine::{Machine, NicRole, PciFunction, PciKind, PciParent};
use crate::policy::{NicSharing, ResourceKind, ResourcePolicy};
use crate::test_machines::{gpu, nic};

mod history;
mod merging;

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

pub(super) fn all() -> Vec<ResourcePolicy> {
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

/// A GPU and a NIC in one slot, and the same in another.
pub(super) fn two_pairs() -> Machine {
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

#[test]
fn a_partition_survives_its_serialisation() {
    let partition = compute(&two_pairs(), &all());
    let text = serde_json::to_string(&partition).unwrap();
    assert_eq!(serde_json::from_str::<Partition>(&text).unwrap(), partition);
}
