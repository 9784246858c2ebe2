//! Pairings and preferred sets that went wrong for users of comparable software, each under its public report.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::BTreeSet;

use topology::distance::Distance;
use topology::fact::Fact;
use topology::machine::Machine;
use topology::node_file::{NodeDevice, devices};
use topology::partition::partition;
use topology::policy::ResourcePolicy;
use topology::report::discovery;

use support::{files, machine, paired, within};

mod support;

fn node_devices(machine: &Machine, policy: &ResourcePolicy) -> Vec<NodeDevice> {
    let paths = machine.paths();
    let partition = partition(machine, &paths, std::slice::from_ref(policy)).unwrap();
    devices(machine, &paths, &partition.resources[0])
}

/// G32 (deepseek-ai/DeepEP#466): both GPUs of a switch got its first NIC.
#[test]
fn two_gpus_and_two_nics_on_a_switch_get_one_each() {
    for name in ["gcp-a4-b200-vm", "azure-ndv4-a100", "rccl-8gcd-mi250-8roce"] {
        let pairs = paired(&machine(name), &ResourcePolicy::default()).pairs;
        let nics: Vec<usize> = pairs.iter().map(|pair| pair.nics[0]).collect();
        assert_eq!(nics, [0, 1, 2, 3, 4, 5, 6, 7], "{name}: GPU i has NIC i");
        assert!(pairs.iter().all(|pair| !pair.shared), "{name}");
    }
}

/// G34 (deepseek-ai/DeepEP#386): a NIC was known by the prefix of its name.
#[test]
fn a_renamed_nic_is_paired_as_before() {
    let before = machine("nvidia-dgx-a100");
    let mut renamed = before.clone();
    for nic in &mut renamed.nics {
        nic.rdma = Some(format!("roce_rail{}", nic.index));
    }
    let nics = |machine: &Machine| -> Vec<Vec<usize>> {
        let pairs = paired(machine, &ResourcePolicy::default()).pairs;
        pairs.into_iter().map(|pair| pair.nics).collect()
    };
    assert_eq!(nics(&renamed), nics(&before));
}

/// G36 (vllm-project/vllm#42083): a launcher takes pairs of PCI addresses.
#[test]
fn what_discover_prints_holds_the_addresses_of_each_pair() {
    let machine = machine("nvidia-dgx-h100");
    let printed = discovery(&machine, &machine.paths(), &ResourcePolicy::default());
    let pair = &printed.pairs[0];
    let gpu = printed
        .gpus
        .iter()
        .find(|gpu| gpu.name == pair.gpu)
        .unwrap();
    let nic = printed
        .nics
        .iter()
        .find(|nic| nic.name == pair.nics[0])
        .unwrap();
    let addresses = (gpu.pci.as_deref(), nic.pci.as_deref());
    assert_eq!(addresses, (Some("0000:1b:00.0"), Some("0000:18:00.0")));
}

/// D25 (k8snetworkplumbingwg/sriov-network-device-plugin#574): a GPU got a function of another socket.
#[test]
fn a_nic_of_another_socket_is_no_partner_of_a_gpu() {
    let mut machine = machine("nvidia-dgx2-v100");
    machine.gpus.truncate(1);
    machine.nics.drain(1..7);
    let levels = machine
        .nics
        .iter()
        .map(|nic| machine.paths().distance(0, nic.index));
    assert_eq!(levels.collect::<Vec<_>>(), [Distance::Pix, Distance::Sys]);
    machine.nics.reverse();
    for limit in [Distance::Pxb, Distance::Sys] {
        assert_eq!(
            paired(&machine, &within(limit)).pairs[0].nics,
            [0],
            "{limit}"
        );
    }
}

/// D51 (koordinator-sh/koordinator#2646): a root with three NICs took the turns of the others.
#[test]
fn a_root_with_more_nics_starves_no_other() {
    let machine = machine("h100-class-8gpu-12nic-three-pix-on-gpu0-and-4");
    for nics_per_gpu in [1, 2] {
        let policy = ResourcePolicy {
            nics_per_gpu,
            ..ResourcePolicy::default()
        };
        let pairs = paired(&machine, &policy).pairs;
        let sizes: Vec<usize> = pairs.iter().map(|pair| pair.nics.len()).collect();
        let more = usize::try_from(nics_per_gpu).unwrap();
        assert_eq!(sizes, [more, 1, 1, 1, more, 1, 1, 1]);
        assert!(
            pairs
                .iter()
                .all(|pair| pair.distance == Distance::Pix && !pair.shared)
        );
    }
}

/// D9 (Mellanox/k8s-rdma-shared-dev-plugin#117): no hint; D54 (kubernetes/kubernetes#135541): so many that the kubelet stalls.
#[test]
fn a_device_lists_the_numa_nodes_of_its_parts_and_no_others() {
    let mut with_nodes = 0;
    for file in files() {
        for device in node_devices(&file.machine, &within(Distance::Sys)) {
            let gpu = file.machine.gpus.iter().find(|gpu| {
                let key = topology::partition::gpu_key(gpu);
                key == device.id
            });
            let nic = file
                .machine
                .nics
                .iter()
                .filter(|nic| nic.name() == device.nics[0].rdma);
            let nodes = nic.map(|nic| &nic.numa).chain(gpu.map(|gpu| &gpu.numa));
            let nodes: BTreeSet<u32> = nodes.filter_map(|numa| numa.known().copied()).collect();
            let listed: BTreeSet<u32> = device.numa_nodes.iter().copied().collect();
            assert_eq!(listed, nodes, "{}: {}", file.name, device.id);
            assert!(listed.len() <= 2 && listed.len() == device.numa_nodes.len());
            with_nodes += usize::from(!listed.is_empty());
        }
    }
    assert!(with_nodes > 300, "{with_nodes} devices");
}

/// D35 (NVIDIA/k8s-device-plugin#1643): one device without a NUMA node took the hints from all.
#[test]
fn one_device_without_a_numa_node_leaves_the_others_theirs() {
    let mut machine = machine("nvidia-dgx-h100");
    machine.gpus[0].numa = Fact::Unreadable("read numa_node: no such file".to_owned());
    machine.nics[0].numa = Fact::Absent;
    let devices = node_devices(&machine, &ResourcePolicy::default());
    let nodes: Vec<&[u32]> = devices
        .iter()
        .map(|device| &device.numa_nodes[..])
        .collect();
    let (zero, one): (&[u32], &[u32]) = (&[0], &[1]);
    assert_eq!(nodes, [&[], zero, zero, zero, one, one, one, one]);
}

/// D62 (NVIDIA/nccl#1464): a guest hides its switches, so that no GPU was paired.
#[test]
fn a_guest_without_switches_is_paired_by_its_clouds_file() {
    let guest = machine("azure-ndv5-h100");
    let told = paired(&guest, &ResourcePolicy::default());
    assert_eq!((told.pairs.len(), told.unpaired.len()), (8, 0));
    let mut untold = guest;
    untold.stated = None;
    assert!(paired(&untold, &ResourcePolicy::default()).pairs.is_empty());
}
