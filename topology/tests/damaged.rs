//! Machine files and topology files that are damaged here and there: refused or read, and nothing in between. A machine
//! that is read is paired and drawn like any other.
//!
//! `PROPTEST_CASES` sets the budget, 256 by default: `PROPTEST_CASES=100000 cargo test -p topology --test damaged`.

use std::collections::BTreeSet;

use proptest::prelude::*;
use topology::file::parse;
use topology::machine::Machine;
use topology::nccl_xml::{read, write};
use topology::partition::partition;
use topology::policy::{ResourceKind, ResourcePolicy};
use topology::report;

use damage::{apply, damages};

#[path = "support/damage.rs"]
mod damage;
mod support;

const MACHINES: [&str; 4] = [
    "azure-ndv5-h100-in-guest",
    "2gpu-2nic-other-socket-interleaved",
    "container-1gpu-2nic-node",
    "nvidia-dgx-a100",
];

/// Everything that is worked out from a machine: each GPU is in one resource at most.
fn use_of(machine: &Machine) {
    let paths = machine.paths();
    let kinds = [
        ("rdma/gpudirect", ResourceKind::Pair),
        ("rdma/gpu", ResourceKind::Gpu),
        ("rdma/shared", ResourceKind::SharedNic),
    ];
    let policies = kinds.map(|(name, kind)| ResourcePolicy {
        name: name.to_owned(),
        kind,
        ..ResourcePolicy::default()
    });
    if let Ok(partition) = partition(machine, &paths, &policies) {
        let devices = partition.resources.iter().flat_map(|r| &r.devices);
        let gpus: Vec<&String> = devices
            .filter_map(|device| device.gpu.as_ref().map(|gpu| &gpu.key))
            .collect();
        let distinct: BTreeSet<&&String> = gpus.iter().collect();
        assert_eq!(distinct.len(), gpus.len());
        let _ = topology::node_file::devices(machine, &paths, &partition.resources[0]);
    }
    let _ = report::discovery(machine, &paths, &policies[0]);
    let _ = write(machine);
}

proptest! {
    #[test]
    fn a_damaged_machine_file_is_refused_or_is_a_machine(
        which in 0..MACHINES.len(),
        damages in damages(),
    ) {
        let texts = support::texts();
        if let Ok(file) = parse(&apply(&texts[MACHINES[which]], &damages)) {
            use_of(&file.machine);
        }
    }

    #[test]
    fn a_damaged_topology_file_is_refused_or_states_distances(
        which in 0..2_usize,
        damages in damages(),
    ) {
        let (text, name) = [
            ("azure-ndv5-topo.xml", "azure-ndv5-h100-in-guest"),
            ("aws-p4d-24xl-topo.xml", "aws-p4d-a100"),
        ][which];
        let mut machine = support::file(name).machine;
        if let Ok(stated) = read(&apply(&support::xml(text), &damages), text, &machine) {
            machine.stated = Some(stated);
            use_of(&machine);
        }
    }
}
