use topology::fact::Fact;
use topology::machine::Port;

use super::*;

fn nic(index: usize, rdma: &str, netdev: &str, layer: machine::LinkLayer, gbps: u64) -> Nic {
    let port = Port {
        number: 1,
        state: Fact::Absent,
        link_layer: Fact::Known(layer),
        rate_mbps: Fact::Known(gbps * 1000),
    };
    Nic {
        rdma: Some(rdma.to_owned()),
        pci: Some(format!("0000:{index:02x}:00.0").parse().unwrap()),
        ports: vec![port],
        ..crate::test_network::nic(index, netdev)
    }
}

fn rule(matches: NicMatch, role: NicRole) -> NicRule {
    NicRule { matches, role }
}

#[test]
fn the_first_rule_that_matches_wins() {
    let nics = vec![
        nic(0, "mlx5_0", "ib0", machine::LinkLayer::InfiniBand, 400),
        nic(1, "mlx5_1", "eth0", machine::LinkLayer::Ethernet, 100),
        nic(2, "mlx5_10", "eth1", machine::LinkLayer::Ethernet, 25),
    ];
    let mut machine = Machine {
        nics,
        ..Machine::default()
    };
    let pci = NicMatch {
        pci: Some("0000:02:00.0".to_owned()),
        ..NicMatch::default()
    };
    let ethernet = NicMatch {
        link_layer: Some(LinkLayer::Ethernet),
        ..NicMatch::default()
    };
    assign(
        &mut machine,
        &[
            rule(pci, NicRole::Management),
            rule(ethernet, NicRole::Storage),
        ],
        &KeptRoles::new(),
        &BTreeSet::new(),
    );
    let roles: Vec<_> = machine.nics.iter().map(|nic| nic.role).collect();
    let wanted = [
        machine::NicRole::Compute,
        machine::NicRole::Storage,
        machine::NicRole::Management,
    ];
    assert_eq!(roles, wanted);
}

#[test]
fn every_named_part_must_match() {
    let nic = nic(1, "mlx5_1", "eth0", machine::LinkLayer::Ethernet, 100);
    let check = |text: &str| matches(&serde_yaml::from_str::<NicMatch>(text).unwrap(), &nic);
    assert!(check("{}"));
    assert!(check("{rdma: mlx5_1}") && check("{rdma: 'mlx5_*'}") && check("{netdev: 'eth*'}"));
    assert!(!check("{rdma: mlx5_}") && !check("{rdma: mlx5}") && !check("{netdev: ib*}"));
    assert!(check("{minRate: 100}") && !check("{minRate: 101}"));
    assert!(!check("{rdma: mlx5_1, linkLayer: InfiniBand}"));
}

#[test]
fn unknown_is_no_match() {
    let mut nic = nic(1, "mlx5_1", "eth0", machine::LinkLayer::Ethernet, 100);
    nic.ports[0].rate_mbps = Fact::Unreadable("io".to_owned());
    nic.rdma = None;
    let check = |text: &str| matches(&serde_yaml::from_str::<NicMatch>(text).unwrap(), &nic);
    assert!(!check("{minRate: 1}") && !check("{rdma: '*'}"));
}

#[test]
fn a_rate_that_was_never_seen_changes_no_role() {
    let mut nic = nic(1, "mlx5_1", "eth0", machine::LinkLayer::Ethernet, 100);
    nic.ports[0].rate_mbps = Fact::Absent;
    let fast = NicMatch {
        min_rate: Some(200),
        ..NicMatch::default()
    };
    let other = NicMatch {
        netdev: Some("ib*".to_owned()),
        ..fast.clone()
    };
    let any = NicMatch::default();
    let role = |first: &NicMatch, kept: Option<machine::NicRole>| {
        let mut machine = Machine {
            nics: vec![nic.clone()],
            ..Machine::default()
        };
        let rules = [
            rule(first.clone(), NicRole::Management),
            rule(any.clone(), NicRole::Ignore),
        ];
        let kept = kept.map(|role| ("0000:01:00.0".to_owned(), role));
        let kept = kept.into_iter().collect();
        assign(&mut machine, &rules, &kept, &BTreeSet::new());
        machine.nics[0].role
    };
    assert_eq!(
        role(&fast, Some(machine::NicRole::Compute)),
        machine::NicRole::Compute
    );
    assert_eq!(
        role(&fast, Some(machine::NicRole::Storage)),
        machine::NicRole::Storage
    );
    assert_eq!(role(&fast, None), machine::NicRole::Ignore);
    assert_eq!(
        role(&other, Some(machine::NicRole::Compute)),
        machine::NicRole::Ignore
    );
}

#[test]
fn the_nodes_own_nics_are_for_management_unless_a_rule_says_otherwise() {
    let nics = ["eth0", "eth1"].map(|name| {
        let index = usize::from(name == "eth1");
        nic(index, "mlx5", name, machine::LinkLayer::Ethernet, 100)
    });
    let mut machine = Machine {
        nics: nics.into(),
        ..Machine::default()
    };
    let own: BTreeSet<String> = machine
        .nics
        .iter()
        .map(|nic| nic_key(&machine, nic))
        .collect();
    let eth1 = NicMatch {
        netdev: Some("eth1".to_owned()),
        ..NicMatch::default()
    };
    let named = [rule(eth1, NicRole::Compute)];
    assign(&mut machine, &named, &KeptRoles::new(), &own);
    let roles: Vec<_> = machine.nics.iter().map(|nic| nic.role).collect();
    assert_eq!(
        roles,
        [machine::NicRole::Management, machine::NicRole::Compute]
    );
}

#[test]
fn a_wrong_rail_is_named() {
    let given = [("0000:0c:00.0", 3), ("mlx5_0", 1)];
    let given = given.map(|(pci, rail)| NicRail {
        pci: pci.to_owned(),
        rail,
    });
    let (map, findings) = rails(&given);
    assert_eq!(map.values().copied().collect::<Vec<_>>(), [3]);
    assert_eq!(findings[0].component, "rails[1].pci");
}
