use std::collections::BTreeMap;

use topology::fact::Fact;
use topology::machine::{Gpu, Machine};
use topology::pci::PciAddress;

use super::{NvmlFacts, NvmlGpu, add_nvlinks, read};

fn at(bus: u8) -> PciAddress {
    PciAddress {
        domain: 0,
        bus,
        device: 0,
        function: 0,
    }
}

fn machine() -> Machine {
    let gpu = |index: usize, bus| Gpu {
        index,
        uuid: Fact::Absent,
        pci: Some(at(bus)),
        minor: Fact::Absent,
        numa: Fact::Absent,
        product: Fact::Absent,
        bar1_bytes: Fact::Absent,
        nvlinks: BTreeMap::new(),
    };
    Machine {
        gpus: vec![gpu(0, 1), gpu(1, 2), gpu(2, 3)],
        ..Machine::default()
    }
}

/// Bus, links to peers by their bus, links to switches.
type Links<'a> = (u8, &'a [(u8, u32)], u32);

fn nvml(gpus: [Links<'_>; 2]) -> NvmlFacts {
    let gpus = gpus.map(|(bus, peers, switch_links)| NvmlGpu {
        pci: Fact::Known(at(bus)),
        uuid: Fact::Absent,
        minor: Fact::Absent,
        peer_links: peers
            .iter()
            .map(|(bus, links)| (at(*bus), *links))
            .collect(),
        switch_links,
    });
    NvmlFacts {
        driver_version: Fact::Absent,
        cuda_version: Fact::Absent,
        gpus: gpus.to_vec(),
    }
}

#[test]
fn direct_links_count_per_peer() {
    let mut machine = machine();
    add_nvlinks(&mut machine, &nvml([(1, &[(2, 4)], 0), (2, &[(1, 4)], 0)]));
    assert_eq!(machine.gpus[0].nvlinks, BTreeMap::from([(1, 4)]));
    assert_eq!(machine.gpus[1].nvlinks, BTreeMap::from([(0, 4)]));
    assert_eq!(
        machine.gpus[2].nvlinks,
        BTreeMap::new(),
        "the library does not show this one"
    );
}

#[test]
fn links_through_switches_reach_whoever_has_some() {
    let mut machine = machine();
    add_nvlinks(&mut machine, &nvml([(1, &[], 18), (3, &[], 12)]));
    assert_eq!(machine.gpus[0].nvlinks, BTreeMap::from([(2, 12)]));
    assert_eq!(machine.gpus[2].nvlinks, BTreeMap::from([(0, 12)]));
}

#[test]
fn the_library_answers_or_its_absence_is_told() {
    match read() {
        Fact::Known(facts) => assert!(facts.driver_version != Fact::Absent),
        Fact::Absent => panic!("a library that cannot be loaded is unreadable, not absent"),
        Fact::Unreadable(why) => assert!(
            why.starts_with("load libnvidia-ml.so.1: ") || why.starts_with("nvml"),
            "{why}"
        ),
    }
}
