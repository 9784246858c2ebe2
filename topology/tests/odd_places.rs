//! One test for each way in which devices are odd by their place: no tree, no NUMA node, far domains, the CPU between, none.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::BTreeSet;

use topology::distance::{Distance, DistanceSource, NcclPath};
use topology::fact::Fact;
use topology::machine::{Machine, PciParent};
use topology::nccl_xml::read;
use topology::partition::partition;
use topology::pci::PciAddress;
use topology::policy::{ResourceKind, ResourcePolicy, UnknownDistance};

use support::{machine, paired, within, xml};

mod support;

#[test]
fn without_numa_nodes_the_tree_still_tells() {
    let flat = machine("kvm-h200-flat");
    assert!(flat.gpus.iter().all(|gpu| gpu.numa == Fact::Absent));
    let paths = flat.paths();
    assert_eq!(paths.distance(0, 7), Distance::Phb);
    let matrix = machine("h800-4gpu-17nic-vf-pairs-no-numa");
    assert!(matrix.gpus.iter().all(|gpu| gpu.numa.known().is_none()));
    assert_eq!(matrix.paths().distance(0, 4), Distance::Pix);
}

/// A guest that shows neither bridges nor NUMA nodes.
fn blind_guest() -> Machine {
    let mut machine = machine("azure-ndv5-h100-in-guest");
    machine
        .gpus
        .iter_mut()
        .for_each(|gpu| gpu.numa = Fact::Absent);
    machine
        .nics
        .iter_mut()
        .for_each(|nic| nic.numa = Fact::Absent);
    machine
        .functions
        .values_mut()
        .for_each(|function| function.numa = Fact::Absent);
    machine
}

#[test]
fn a_vm_without_a_tree_is_unknown_and_the_policy_decides() {
    let guest = blind_guest();
    assert!((0..8).all(|nic| guest.paths().distance(0, nic) == Distance::Unknown));
    let asked = |guest: &Machine, unknown_distance| {
        let policy = ResourcePolicy {
            unknown_distance,
            ..ResourcePolicy::default()
        };
        paired(guest, &policy)
    };
    for refusing in [UnknownDistance::TopologyFile, UnknownDistance::Refuse] {
        let pairing = asked(&guest, refusing);
        assert_eq!(pairing.unpaired.len(), 8);
        assert!(
            pairing.unpaired[0]
                .reason
                .contains("the distance to every NIC is unknown")
        );
    }
    let by_order = asked(&guest, UnknownDistance::ByOrder);
    assert_eq!(by_order.pairs.len(), 8);
    for pair in &by_order.pairs {
        assert_eq!(pair.distance, Distance::Unknown, "a guess is no distance");
        assert!(
            pair.reason.contains("by index order: no distance is known"),
            "{}",
            pair.reason
        );
    }
    let mut told = guest;
    told.stated = Some(read(&xml("azure-ndv5-topo.xml"), "ndv5.xml", &told).unwrap());
    let believed = asked(&told, UnknownDistance::TopologyFile);
    assert_eq!(believed.pairs.len(), 8);
    assert!(
        believed
            .pairs
            .iter()
            .all(|pair| pair.reason.ends_with("by the topology file ndv5.xml"))
    );
    let path = told.paths().gpu_nic(0, 0).unwrap().clone();
    assert!(matches!(path.source, DistanceSource::TopologyFile(_)));
    assert!(asked(&told, UnknownDistance::Refuse).pairs.is_empty());
}

#[test]
fn pci_domains_above_zero_and_of_five_digits_are_addresses_like_others() {
    let near = machine("gigabyte-e251-v100-cx6dx");
    let far = |pci: PciAddress| PciAddress {
        domain: pci.domain + 0x1_0000,
        ..pci
    };
    let mut moved = near.clone();
    moved.functions = near
        .functions
        .iter()
        .map(|(pci, f)| (far(*pci), f.clone()))
        .collect();
    for function in moved.functions.values_mut() {
        if let PciParent::Bridge(above) = &mut function.parent {
            *above = far(*above);
        }
    }
    moved
        .gpus
        .iter_mut()
        .for_each(|gpu| gpu.pci = gpu.pci.map(far));
    moved
        .nics
        .iter_mut()
        .for_each(|nic| nic.pci = nic.pci.map(far));
    assert_eq!(moved.gpus[0].pci.unwrap().to_string().len(), 13);
    assert_eq!(moved.paths(), near.paths());
    let domains = machine("azure-ndv4-a100");
    let domains: BTreeSet<u32> = domains
        .gpus
        .iter()
        .map(|gpu| gpu.pci.unwrap().domain)
        .collect();
    assert_eq!((domains.len(), domains.contains(&0)), (8, false));
}

/// GB200: every GPU and NIC has a root of its own, and they meet at the CPU, which the GPU reaches over C2C.
#[test]
fn a_grace_machine_meets_its_nics_at_the_cpu() {
    let machine = machine("oci-bm-gpu-gb200-v3-4");
    let paths = machine.paths();
    let path = paths.gpu_nic(0, 0).unwrap();
    assert_eq!(
        (path.distance, path.nccl),
        (Distance::Node, Some(NcclPath::P2c))
    );
    assert_eq!(paths.gpu_nic(0, 4).unwrap().nccl, Some(NcclPath::Sys));
    let pairing = paired(&machine, &ResourcePolicy::default());
    assert_eq!(
        pairing.unpaired.len(),
        4,
        "NODE is farther than PXB: the policy must allow it"
    );
    let near = paired(&machine, &within(Distance::Node));
    let distinct: BTreeSet<usize> = near.pairs.iter().map(|pair| pair.nics[0]).collect();
    assert_eq!((near.pairs.len(), distinct.len()), (4, 4));
}

#[test]
fn software_devices_have_no_place_and_no_partner() {
    let mut machine = machine("gigabyte-e251-v100-cx6dx");
    for nic in &mut machine.nics {
        nic.pci = None;
    }
    let pairing = paired(&machine, &within(Distance::Sys));
    assert!(
        pairing.pairs.is_empty(),
        "a NUMA node is no place: {pairing:?}"
    );
}

#[test]
fn a_machine_without_nics_offers_its_gpus_alone() {
    for name in ["hgx-b200-8-no-rdma", "rtx-pro6000-8gpu-0nic-16numa"] {
        let machine = machine(name);
        let gpus = ResourcePolicy {
            name: "rdma/gpu".to_owned(),
            kind: ResourceKind::Gpu,
            ..ResourcePolicy::default()
        };
        let policies = [ResourcePolicy::default(), gpus];
        let partition = partition(&machine, &machine.paths(), &policies).unwrap();
        let sizes: Vec<usize> = partition
            .resources
            .iter()
            .map(|r| r.devices.len())
            .collect();
        assert_eq!(sizes, [8, 0], "{name}");
        let reason = &partition.resources[0].devices[0].reason;
        assert_eq!(reason, "the machine has no RDMA device of role Compute");
    }
}

#[test]
fn a_machine_without_gpus_offers_its_nics_alone() {
    let machine = machine("nec-aurora-a300-8-ve");
    let nics = ResourcePolicy {
        name: "rdma/shared".to_owned(),
        kind: ResourceKind::SharedNic,
        ..ResourcePolicy::default()
    };
    let policies = [ResourcePolicy::default(), nics];
    let partition = partition(&machine, &machine.paths(), &policies).unwrap();
    let sizes: Vec<usize> = partition
        .resources
        .iter()
        .map(|r| r.devices.len())
        .collect();
    assert_eq!((sizes, partition.left_over.len()), (vec![0, 2], 0));
}
