//! One test for each way in which the GPUs and NICs of a machine are odd; where they are odd by their place, in
//! `odd_places.rs`. What only `/sys` shows (sub-functions, software devices, bonds by their members, virtual functions by
//! `physfn`) is in `host/src/machine/tests.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::{BTreeMap, BTreeSet};

use topology::distance::Distance;
use topology::fact::Fact;
use topology::machine::{LinkLayer, Machine, Nic, NicRole, PortState};
use topology::pairing::Pairing;
use topology::pci::PciAddress;
use topology::policy::ResourcePolicy;

use support::{files, machine, paired, within};

mod support;

/// NIC names of each pair, in the order of the GPUs.
fn names(machine: &Machine, pairing: &Pairing) -> Vec<Vec<String>> {
    let name = |index: &usize| machine.nics[*index].name();
    let pairs = pairing.pairs.iter();
    pairs
        .map(|pair| pair.nics.iter().map(name).collect())
        .collect()
}

#[test]
fn nics_in_reversed_order_go_to_the_gpus_that_they_are_close_to() {
    let machine = machine("vm-h20-8gpu-8nic-reversed");
    let pairing = paired(&machine, &ResourcePolicy::default());
    let nics: Vec<usize> = pairing.pairs.iter().map(|pair| pair.nics[0]).collect();
    assert_eq!(nics, [7, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn nics_that_are_more_than_the_gpus_stay_free() {
    let machine = machine("b200-8gpu-16nic");
    let pairing = paired(&machine, &ResourcePolicy::default());
    let used: BTreeSet<usize> = pairing
        .pairs
        .iter()
        .flat_map(|pair| pair.nics.clone())
        .collect();
    assert_eq!(
        (machine.nics.len(), used.len(), pairing.pairs.len()),
        (16, 8, 8)
    );
    assert!(
        pairing
            .pairs
            .iter()
            .all(|pair| !pair.shared && pair.distance == Distance::Pxb)
    );
}

/// Whether a GPU could move to a NIC that serves it as well and has at least two GPUs fewer.
fn is_uneven(machine: &Machine, pairing: &Pairing) -> bool {
    let paths = machine.paths();
    let mut load: BTreeMap<usize, usize> = machine.nics.iter().map(|nic| (nic.index, 0)).collect();
    for pair in &pairing.pairs {
        *load.get_mut(&pair.nics[0]).unwrap() += 1;
    }
    let rank = |gpu, nic: usize| {
        let path = paths.gpu_nic(gpu, nic).unwrap();
        let port = &machine.nics[nic].ports[0];
        (
            path.distance,
            path.hops,
            port.link_layer.clone(),
            port.rate_mbps.clone(),
        )
    };
    pairing.pairs.iter().any(|pair| {
        let own = pair.nics[0];
        let others = machine.nics.iter().map(|nic| nic.index);
        let mut others = others.filter(|other| rank(pair.gpu, *other) == rank(pair.gpu, own));
        others.any(|other| load[&other] + 2 <= load[&own])
    })
}

#[test]
fn gpus_that_are_more_than_the_nics_share_them_evenly_and_it_is_said() {
    let mut machines = 0;
    for file in files() {
        let machine = &file.machine;
        if machine.gpus.len() <= machine.nics.len() || machine.nics.is_empty() {
            continue;
        }
        let pairing = paired(machine, &within(Distance::Sys));
        assert!(!is_uneven(machine, &pairing), "{}: {pairing:?}", file.name);
        for pair in pairing.pairs.iter().filter(|pair| pair.shared) {
            let said = pair.reason.contains("shared with GPU")
                && pair.reason.contains("GPUs outnumber the NICs");
            assert!(said, "{}: {}", file.name, pair.reason);
        }
        machines += 1;
    }
    assert!(machines >= 40, "{machines} machines");
}

#[test]
fn two_nics_per_gpu_are_the_two_closest() {
    let machine = machine("h100-8gpu-18nic-two-functions-each");
    let policy = ResourcePolicy {
        nics_per_gpu: 2,
        ..ResourcePolicy::default()
    };
    let pairs = paired(&machine, &policy).pairs;
    let nics: Vec<&[usize]> = pairs.iter().map(|pair| &pair.nics[..]).collect();
    let wanted = [
        [0, 1],
        [3, 4],
        [5, 6],
        [7, 8],
        [9, 10],
        [12, 13],
        [14, 15],
        [16, 17],
    ];
    assert_eq!(nics, wanted);
}

#[test]
fn hops_break_ties() {
    let machine = machine("nvidia-dgx-a100");
    let paths = machine.paths();
    let hops = |nic| paths.gpu_nic(1, nic).unwrap().hops;
    assert_eq!(
        paths.distance(1, 0),
        paths.distance(1, 1),
        "nvidia-smi prints PXB for both"
    );
    assert!(hops(0) < hops(1));
    let pair = &paired(&machine, &ResourcePolicy::default()).pairs[1];
    assert_eq!(pair.nics, [0]);
    assert!(
        pair.reason.contains("ties by class but is"),
        "{}",
        pair.reason
    );
}

#[test]
fn the_link_layer_breaks_ties() {
    let mut machine = machine("8gpu-6nic-ib4-eth2-pxb-pairs");
    let pairs = paired(&machine, &ResourcePolicy::default()).pairs;
    assert_eq!(
        machine.nics[pairs[2].nics[0]].ports[0].link_layer,
        Fact::Known(LinkLayer::InfiniBand)
    );
    // The same NIC, if their order were the other one and no other GPU wanted it.
    machine.gpus.remove(3);
    machine.nics.swap(1, 3);
    machine.nics[1].index = 1;
    machine.nics[3].index = 3;
    let pair = &paired(&machine, &ResourcePolicy::default()).pairs[2];
    assert_eq!(machine.nics[pair.nics[0]].name(), "mlx5_1");
    assert!(
        pair.reason.contains("with a slower or unlike link"),
        "{}",
        pair.reason
    );
}

#[test]
fn the_rate_breaks_ties() {
    let mut machine = machine("gigabyte-e251-v100-cx6dx");
    for (nic, rate) in machine.nics.iter_mut().zip([25_000, 100_000]) {
        nic.ports[0].rate_mbps = Fact::Known(rate);
    }
    assert_eq!(
        paired(&machine, &ResourcePolicy::default()).pairs[0].nics,
        [1]
    );
}

/// Link state is health: a partition that followed it would move GPUs to other NICs whenever a cable is pulled.
#[test]
fn a_port_that_is_down_moves_no_pair() {
    for file in files() {
        let before = paired(&file.machine, &ResourcePolicy::default());
        let mut down = file.machine.clone();
        for nic in down.nics.iter_mut().step_by(2) {
            nic.ports[0].state = Fact::Known(PortState::Down);
        }
        assert_eq!(
            paired(&down, &ResourcePolicy::default()),
            before,
            "{}",
            file.name
        );
    }
}

#[test]
fn a_bond_is_one_nic() {
    let machine = machine("a800-sxm4-8gpu-8bond-pairs");
    assert!(machine.nics.iter().all(|nic| nic.bond));
    let pairing = paired(&machine, &ResourcePolicy::default());
    let used: BTreeSet<usize> = pairing.pairs.iter().map(|pair| pair.nics[0]).collect();
    assert_eq!((used.len(), pairing.unpaired.len()), (8, 0));
}

#[test]
fn the_ports_of_a_card_are_two_nics_and_a_gpu_gets_one() {
    let machine = machine("converged-a100x-2x");
    let pairing = paired(&machine, &ResourcePolicy::default());
    assert_eq!(names(&machine, &pairing), [["NIC0"], ["NIC2"]]);
    let reason = &pairing.pairs[0].reason;
    assert!(
        reason.contains("NIC1 is equally close, on the same card"),
        "{reason}"
    );
}

/// Two virtual functions of one card, and one of another, all as close to both GPUs: each GPU gets a card of its own.
#[test]
fn virtual_functions_are_of_the_card_of_their_physical_function() {
    let mut machine = machine("gcp-a4-b200-vm");
    machine.gpus.truncate(2);
    machine.nics.truncate(2);
    let card: PciAddress = machine.nics[0].pci.unwrap();
    machine.nics[0].physfn = Some("0000:7f:00.0".parse().unwrap());
    let sibling = Nic {
        index: 1,
        rdma: Some("vf1".to_owned()),
        pci: Some(PciAddress { device: 1, ..card }),
        ..machine.nics[0].clone()
    };
    machine
        .functions
        .insert(sibling.pci.unwrap(), machine.functions[&card].clone());
    machine.nics.insert(1, sibling);
    machine.nics[2].index = 2;
    let pairing = paired(&machine, &ResourcePolicy::default());
    let names: Vec<String> = names(&machine, &pairing).concat();
    assert_eq!(names, ["rocep145s0", "rocep146s0"], "{pairing:?}");
}

#[test]
fn storage_and_management_nics_on_a_gpus_switch_are_no_partners() {
    for role in [NicRole::Storage, NicRole::Management, NicRole::Ignore] {
        let mut machine = machine("hgx-h100-8-ucx-2gpu-visible");
        assert_eq!(
            paired(&machine, &ResourcePolicy::default()).pairs[0].nics,
            [3]
        );
        machine.nics[3].role = role;
        let pairing = paired(&machine, &ResourcePolicy::default());
        assert_eq!(pairing.unpaired[0].gpu, 0, "{role:?}");
        let any = paired(&machine, &within(Distance::Sys));
        assert!(
            any.pairs.iter().all(|pair| !pair.nics.contains(&3)),
            "{role:?}"
        );
    }
}
