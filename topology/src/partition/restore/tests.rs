use super::*;
use crate::node_file::{self, NodeResource, SCHEMA};
use crate::partition::partition;
use crate::partition::tests::{all, two_pairs};
use crate::test_machines::nic as test_nic;

fn written(machine: &Machine, partition: &Partition) -> NodeFile {
    let resource = |part: &ResourcePartition| NodeResource {
        name: part.name.clone(),
        kind: part.kind,
        hold_down_seconds: 30,
        stable_up_seconds: 60,
        unhealthy_on_nic_down: true,
        nic_lists: Vec::new(),
        envs: Vec::new(),
        devices: node_file::devices(machine, &machine.paths(), part),
    };
    NodeFile {
        schema: SCHEMA.to_owned(),
        boot_id: "boot".to_owned(),
        node_uid: "uid".to_owned(),
        generation: 1,
        install_hash: String::new(),
        resources: partition.resources.iter().map(resource).collect(),
    }
}

#[test]
fn what_was_written_comes_back() {
    let mut machine = two_pairs();
    // Ids sort the other way round than the hardware does; and one function has two RDMA devices.
    machine.gpus[0].uuid = crate::fact::Fact::Known("GPU-z".to_owned());
    machine.nics.push(test_nic(2, machine.nics[1].pci));
    let partition = partition(&machine, &machine.paths(), &all()).unwrap();
    let restored = restore(&written(&machine, &partition), &machine);
    assert_eq!(restored.resources, partition.resources);
}
