use host::facts::Sourced;
use host::facts::network::{Network, Route};
use topology::fact::Fact;

use super::*;
use crate::evidence::Evidence;
use crate::host_state::HostState;
use crate::injection::Injection;
use crate::observed::{Before, Kept, Platform};
use crate::test_network::{link, machine_with, nic};

/// A node whose eth0 does or does not carry the default route; `None`: it cannot be read.
fn observed(boot: &str, routed: Option<bool>, before: Option<OwnNics>) -> Observed {
    let route = Route {
        table: "main".to_owned(),
        to: "0.0.0.0/0".parse().unwrap(),
        devices: vec!["eth0".to_owned()],
        gateways: Vec::new(),
        protocol: None,
    };
    let found = |fact| Sourced {
        source: String::new(),
        fact,
    };
    let mut state = HostState {
        boot_id: boot.to_owned(),
        ..HostState::default()
    };
    state.facts.network = Network {
        links: Sourced {
            source: String::new(),
            fact: Fact::Known([("eth0".to_owned(), link(2))].into()),
        },
        routes: found(match routed {
            Some(true) => Fact::Known(vec![route]),
            Some(false) => Fact::Known(Vec::new()),
            None => Fact::Unreadable("EIO".to_owned()),
        }),
        ..Network::default()
    };
    Observed {
        machine: machine_with(vec![nic(0, "eth0"), nic(1, "eth1")]),
        platform: Platform::default(),
        state,
        kubelet: Evidence::silent("not asked"),
        injection: Injection::default(),
        before: Before {
            kept: before.map(|own| Kept {
                own,
                ..Kept::default()
            }),
            ..Before::default()
        },
        findings: Vec::new(),
    }
}

#[test]
fn a_default_route_that_comes_and_goes_moves_nothing_within_a_boot() {
    let seen = OwnNics::learn(&observed("a", Some(true), None));
    assert_eq!(seen.nics, ["0000:01:00.0".to_owned()].into());
    for later in [Some(false), None] {
        let kept = OwnNics::learn(&observed("a", later, Some(seen.clone())));
        assert_eq!(kept.nics, seen.nics);
    }
    let next_boot = OwnNics::learn(&observed("b", Some(false), Some(seen)));
    assert!(next_boot.is_empty());
}

#[test]
fn not_to_be_able_to_look_makes_nobody_the_nodes_own() {
    assert!(OwnNics::learn(&observed("a", None, None)).is_empty());
}

#[test]
fn the_reason_is_told_while_the_role_is_that() {
    let own = OwnNics::learn(&observed("a", Some(true), None));
    let mut machine = machine_with(vec![nic(0, "eth0"), nic(1, "eth1")]);
    assert!(own.findings(&machine).is_empty(), "a rule made it Compute");
    machine.nics[0].role = NicRole::Management;
    let findings = own.findings(&machine);
    assert_eq!(findings[0].component, "mlx5_0");
    assert!(
        findings[0].message.contains("carries a default route"),
        "{findings:?}"
    );
}
