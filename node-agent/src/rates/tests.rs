use super::*;

/// Two NICs at one function each.
fn machine(ports: [(PortState, u64); 2]) -> Machine {
    let nics = ports
        .into_iter()
        .enumerate()
        .map(|(index, (state, gbps))| Nic {
            index,
            rdma: Some(format!("mlx5_{index}")),
            pci: Some(format!("0000:{index:02x}:00.0").parse().unwrap()),
            numa: Fact::Absent,
            netdevs: Vec::new(),
            ports: vec![Port {
                number: 1,
                state: Fact::Known(state),
                link_layer: Fact::Absent,
                rate_mbps: Fact::Known(gbps * 1000),
            }],
            physfn: None,
            bond: false,
            uverbs: Fact::Absent,
            ids: Fact::Absent,
            role: topology::machine::NicRole::Compute,
        });
    Machine {
        nics: nics.collect(),
        ..Machine::default()
    }
}

fn rates(machine: &Machine) -> Vec<Option<u64>> {
    let ports = machine.nics.iter().flat_map(|nic| &nic.ports);
    ports.map(|port| port.rate_mbps.known().copied()).collect()
}

#[test]
fn the_highest_rate_of_an_active_port_is_remembered() {
    let mut first = machine([(PortState::Active, 400), (PortState::Down, 10)]);
    let known = learn(&first, &Rates::new());
    set(&mut first, &known);
    assert_eq!(rates(&first), [Some(400_000), None]);
    let mut later = machine([(PortState::Down, 10), (PortState::Active, 100)]);
    let known = learn(&later, &known);
    set(&mut later, &known);
    assert_eq!(rates(&later), [Some(400_000), Some(100_000)]);
    let slower = machine([(PortState::Active, 200), (PortState::Init, 800)]);
    assert_eq!(learn(&slower, &known), known);
}

#[test]
fn a_kept_nic_that_nothing_is_known_of_is_no_slower_than_any_other() {
    let mut machine = machine([(PortState::Active, 400), (PortState::Down, 10)]);
    let known = learn(&machine, &Rates::new());
    set(&mut machine, &known);
    let mut unpaired = machine.clone();
    prefer(&mut unpaired, &BTreeSet::new());
    assert_eq!(rates(&unpaired), [Some(400_000), None]);
    prefer(
        &mut machine,
        &["0000:00:00.0", "0000:01:00.0"].map(str::to_owned).into(),
    );
    assert_eq!(rates(&machine), [Some(400_000), Some(400_001)]);
}
