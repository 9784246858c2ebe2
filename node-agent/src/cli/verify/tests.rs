use std::collections::BTreeSet;

use super::*;
use crate::action::{
    Activation, BUDGET, DriverChange, FabricChange, LinkType, Netdev, TuningChange,
};
use crate::modules::ModuleName;

fn action(change: Change, blocked: Option<Blocked>) -> Action {
    Action {
        change,
        undo: None,
        precondition: "another value was seen".to_owned(),
        attempts: 0,
        budget: BUDGET,
        blocked,
        last_error: None,
    }
}

fn mtu(mtu: u32) -> Change {
    let name = "ens1".to_owned();
    let netdev = Netdev { name, index: 4 };
    Change::Fabric(FabricChange::Mtu { netdev, mtu })
}

fn link_type(port: u8) -> Change {
    Change::Tuning(TuningChange::LinkType {
        function: "0000:14:00.0".parse().unwrap(),
        port,
        link: LinkType::Ethernet,
    })
}

fn activation() -> Change {
    Change::Driver(DriverChange::ActivateDriver {
        way: Activation::Reboot,
        version: "24.10".to_owned(),
    })
}

fn heads(rows: &[Row]) -> Vec<String> {
    let line = |row: &Row| row.to_string().split(':').next().unwrap_or("").to_owned();
    rows.iter().map(line).collect()
}

#[test]
fn every_kind_of_change_has_its_line() {
    let read_request = Change::Tuning(TuningChange::MaxReadRequest {
        function: "0000:14:00.0".parse().unwrap(),
        bytes: 4096,
    });
    let plan = Plan {
        met: BTreeSet::from([mtu(4200), read_request]),
        actions: vec![
            action(activation(), None),
            action(mtu(9000), None),
            action(link_type(1), None),
            action(
                Change::LoadModule(ModuleName::new("ib_umad").unwrap()),
                None,
            ),
        ],
        ..Plan::default()
    };
    let unread = FindingId::HostUnreadable.about("firewalld", "no answer within 10 s");
    let other = FindingId::FirewallBlocks.about("firewall", "closed");
    let rows = rows(&plan, &[other, unread], |_| Err("elsewise".to_owned()));
    let said: Vec<_> = rows.iter().map(ToString::to_string).collect();
    let text = said.join("\n");
    insta::assert_snapshot!(text, @r"
    in effect  SetMtu ens1 = 4200
    in effect  SetMaxReadRequest 0000:14:00.0 = 4096
    differs    ActivateDriver rdma-driver = 24.10: another value was seen
    differs    SetMtu ens1 = 9000: another value was seen
    differs    SetLinkType 0000:14:00.0 port 1 = Ethernet: another value was seen
    unknown    firewalld: no answer within 10 s
    ");
    let unmet = rows.iter().filter(|row| row.is_unmet(true)).count();
    assert_eq!(unmet, 3, "the module is read again by itself");
}

#[test]
fn written_and_in_effect_are_two_lines_and_given_up_is_a_difference() {
    let plan = Plan {
        actions: vec![
            action(activation(), Some(Blocked::Prepared)),
            action(link_type(1), None),
            action(link_type(2), Some(Blocked::NoEffect)),
        ],
        ..Plan::default()
    };
    let rows = rows(&plan, &[], |_| Ok(()));
    let standings: Vec<_> = heads(&rows)
        .iter()
        .map(|head| head[..10].to_owned())
        .collect();
    assert_eq!(standings, ["written   ", "written   ", "differs   "]);
    assert!(rows.iter().all(|row| row.is_unmet(true)));
    assert!(rows[2].to_string().contains("gave up after the reboot"));
}

#[test]
fn a_module_is_in_effect_and_a_key_is_written() {
    let module = Change::LoadModule(ModuleName::new("ib_umad").unwrap());
    let key = Change::SetOpenibConf {
        key: "UMAD_LOAD".to_owned(),
        value: Some("yes".to_owned()),
    };
    assert_eq!(asked(&module, Ok(())).standing, Standing::InEffect);
    let written = asked(&key, Ok(()));
    assert!(written.standing == Standing::Written && !written.is_unmet(false));
    let differs = asked(&key, Err("UMAD_LOAD is no".to_owned()));
    assert!(differs.is_unmet(false));
}
