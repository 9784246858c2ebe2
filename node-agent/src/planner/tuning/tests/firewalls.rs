//! The host's firewall and who keeps it.

use crds::fabric::{Fabric, Firewall, RailAddresses};
use host::facts::tuning::firewall::{Accept, Firewalld, InputChain, Packets, Zone};

use super::*;
use crate::action::{Opening, Protocol, Via};
use crate::firewall_rules::{COMMENT, rich_rule, ufw_tuple};
use crate::journal::Changed;

fn firewall(mode: Firewall) -> Scene {
    let range = RailAddresses {
        rail: 0,
        cidr: "10.10.0.0/16".to_owned(),
    };
    Scene::asks(|config| {
        config.fabric = Fabric {
            firewall: Some(mode),
            addresses: vec![range],
            ..Fabric::default()
        };
    })
    .tuned(|tuning| {
        tuning.firewall.firewalld = Fact::Absent;
        tuning.firewall.ufw = Fact::Absent;
        tuning.firewall.input_chains = Fact::Known(Vec::new());
        tuning.firewall.legacy_tables = Fact::Absent;
    })
}

fn chain(table: &str, name: &str, accepts: Vec<Accept>) -> InputChain {
    InputChain {
        family: "inet".to_owned(),
        table: table.to_owned(),
        name: name.to_owned(),
        priority: 0,
        drops: true,
        accepts,
    }
}

fn accept(source: Option<&str>, ports: Option<(u16, u16)>) -> Accept {
    Accept {
        handle: 4,
        comment: None,
        packets: Packets {
            source: source.map(str::to_owned),
            protocol: ports.map(|_| "tcp".to_owned()),
            ports,
        },
    }
}

#[test]
fn firewalls() {
    // Rule 12: the host's firewall never sees RoCE of hardware, so without a dropping chain there is nothing to say.
    firewall(Firewall::Manage).check("firewall_without_a_filter");
    let drops = |accepts: Vec<Accept>| {
        move |tuning: &mut Tuning| {
            tuning.firewall.input_chains = Fact::Known(vec![chain("site", "input", accepts)]);
        }
    };
    firewall(Firewall::Report)
        .tuned(drops(vec![]))
        .check("firewall_drops_and_is_reported");
    firewall(Firewall::Manage)
        .tuned(drops(vec![]))
        .check("firewall_drops_and_is_opened");
    firewall(Firewall::Manage)
        .tuned(drops(vec![accept(Some("10.0.0.0/8"), None)]))
        .check("firewall_lets_a_wider_range_in");
    firewall(Firewall::Manage)
        .tuned(drops(vec![accept(Some("10.10.0.0/16"), Some((22, 22)))]))
        .check("firewall_lets_ssh_in_only");
    let soft = |tuning: &mut Tuning| tuning.soft_roce = vec!["rxe0".to_owned()];
    firewall(Firewall::Manage)
        .tuned(drops(vec![]))
        .tuned(soft)
        .check("firewall_and_soft_roce");
    let iptables = |tuning: &mut Tuning| {
        let own = InputChain {
            family: "ip".to_owned(),
            ..chain("filter", "INPUT", vec![])
        };
        tuning.firewall.input_chains = Fact::Known(vec![own]);
        tuning.firewall.legacy_tables = Fact::Known(vec!["filter".to_owned()]);
    };
    firewall(Firewall::Manage)
        .tuned(iptables)
        .check("firewall_of_iptables");
    firewall(Firewall::Manage)
        .tuned(drops(vec![]))
        .with(|scene| scene.config.fabric.addresses.clear())
        .check("firewall_without_a_range");
    firewall(Firewall::Manage)
        .tuned(|tuning| {
            tuning.firewall.input_chains =
                Fact::Unreadable("nft: exit status: 1: Operation not permitted".to_owned());
        })
        .check("firewall_unreadable");
    let odd = |tuning: &mut Tuning| {
        tuning.firewall.input_chains =
            Fact::Known(vec![chain("site; flush ruleset", "input", vec![])]);
    };
    firewall(Firewall::Manage)
        .tuned(odd)
        .check("firewall_with_a_name_that_nft_would_misread");
}

#[test]
fn keepers_of_firewalls() {
    let zone = |rules: &[&str]| Zone {
        name: "fabric".to_owned(),
        target: "default".to_owned(),
        interfaces: vec!["ens1".to_owned()],
        rich_rules: rules.iter().map(|&rule| rule.to_owned()).collect(),
    };
    let firewalld = |zone: Zone| {
        move |tuning: &mut Tuning| {
            tuning.firewall.firewalld = Fact::Known(Firewalld {
                default_zone: "public".to_owned(),
                zones: Fact::Known(vec![zone]),
            });
            tuning.firewall.input_chains =
                Fact::Known(vec![chain("firewalld", "filter_INPUT", vec![])]);
        }
    };
    firewall(Firewall::Manage)
        .tuned(firewalld(zone(&[])))
        .check("firewalld_in_the_zone_of_the_nic");
    let rule = "rule family=\"ipv4\" source address=\"10.10.0.0/16\" port port=\"1024-65535\" protocol=\"tcp\" accept";
    firewall(Firewall::Manage)
        .tuned(firewalld(zone(&[rule])))
        .check("firewalld_open_already");
    let elsewhere = Zone {
        interfaces: Vec::new(),
        ..zone(&[])
    };
    firewall(Firewall::Report)
        .tuned(firewalld(elsewhere))
        .check("firewalld_default_zone");
    let ufw = |rules: &[&str]| {
        let rules: Vec<_> = rules.iter().map(|&rule| rule.to_owned()).collect();
        move |tuning: &mut Tuning| tuning.firewall.ufw = Fact::Known(rules)
    };
    firewall(Firewall::Manage)
        .tuned(ufw(&["allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in"]))
        .check("ufw_closed");
    firewall(Firewall::Manage)
        .tuned(ufw(&["allow tcp 1024:65535 0.0.0.0/0 any 10.10.0.0/16 in"]))
        .check("ufw_open_already");
}

/// The agent opened `via` for the range in this boot.
fn opened(via: &Via, cidr: &str) -> impl FnOnce(&mut Scene) + use<> {
    let opening = Opening::new(cidr, Protocol::Tcp, (1024, 65535)).unwrap();
    let to = |open| {
        Change::Tuning(TuningChange::Firewall {
            via: via.clone(),
            opening: opening.clone(),
            open,
        })
    };
    let entry = Changed {
        done: to(true),
        undo: to(false),
        boot_id: BOOT.to_owned(),
        at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-03-01T11:00:00Z".parse().unwrap(),
        ),
        asserted: true,
    };
    move |scene| {
        let place = entry.done.place();
        scene.memory.journal.changed.insert(place, entry);
    }
}

fn bootstrap(cidr: &str) -> Opening {
    Opening::new(cidr, Protocol::Tcp, (1024, 65535)).unwrap()
}

fn ours(cidr: &str) -> Accept {
    Accept {
        comment: Some(COMMENT.to_owned()),
        ..accept(Some(cidr), Some((1024, 65535)))
    }
}

fn site() -> Via {
    Via::Nft {
        family: "inet".to_owned(),
        table: "site".to_owned(),
        chain: "input".to_owned(),
    }
}

fn chains(accepts: Vec<Accept>) -> impl FnOnce(&mut Tuning) {
    move |tuning| {
        tuning.firewall.input_chains = Fact::Known(vec![chain("site", "input", accepts)]);
    }
}

/// The range was changed: what was opened for the old one goes, in the plan in which the new one comes.
#[test]
fn openings_for_another_range_go() {
    let site = site();
    // The old range holds the new one: its rule does not count, and goes after the new one has come.
    firewall(Firewall::Manage)
        .with(opened(&site, "10.0.0.0/8"))
        .tuned(chains(vec![ours("10.0.0.0/8")]))
        .check("firewall_of_another_range");
    firewall(Firewall::Report)
        .with(opened(&site, "10.0.0.0/8"))
        .tuned(chains(vec![ours("10.0.0.0/8")]))
        .check("firewall_of_another_range_reported");
    let by_hand = accept(Some("10.0.0.0/8"), Some((1024, 65535)));
    firewall(Firewall::Manage)
        .with(opened(&site, "10.0.0.0/8"))
        .tuned(chains(vec![by_hand]))
        .check("firewall_of_another_range_by_hand");
}

#[test]
fn only_openings_whose_range_surely_is_another_one_go() {
    let site = site();
    firewall(Firewall::Manage)
        .with(opened(&site, "10.10.0.0/16"))
        .tuned(chains(vec![ours("10.10.0.0/16")]))
        .check("firewall_of_this_range");
    firewall(Firewall::Manage)
        .with(opened(&site, "10.0.0.0/8"))
        .with(|scene| "10.10.0.0".clone_into(&mut scene.config.fabric.addresses[0].cidr))
        .tuned(chains(vec![ours("10.0.0.0/8")]))
        .check("firewall_of_another_range_and_none_that_can_be_read");
    firewall(Firewall::Manage)
        .with(opened(&site, "10.0.0.0/8"))
        .with(|scene| scene.config.fabric.addresses.clear())
        .tuned(chains(vec![ours("10.0.0.0/8")]))
        .check("firewall_of_a_range_that_is_gone");
}

#[test]
fn firewalld_and_ufw_lose_openings_for_another_range() {
    let ufw = |tuning: &mut Tuning| {
        let old = ufw_tuple(&bootstrap("10.9.0.0/16"));
        tuning.firewall.ufw = Fact::Known(vec![old]);
    };
    firewall(Firewall::Manage)
        .with(opened(&Via::Ufw, "10.9.0.0/16"))
        .tuned(ufw)
        .check("ufw_of_another_range");
    let public = Via::Firewalld {
        zone: "public".to_owned(),
    };
    let firewalld = |tuning: &mut Tuning| {
        let zone = Zone {
            name: "public".to_owned(),
            target: "default".to_owned(),
            interfaces: Vec::new(),
            rich_rules: vec![
                rich_rule(&bootstrap("10.9.0.0/16")),
                rich_rule(&bootstrap("10.10.0.0/16")),
            ],
        };
        tuning.firewall.firewalld = Fact::Known(Firewalld {
            default_zone: "public".to_owned(),
            zones: Fact::Known(vec![zone]),
        });
    };
    firewall(Firewall::Manage)
        .with(opened(&public, "10.9.0.0/16"))
        .tuned(firewalld)
        .check("firewalld_of_another_range");
}

#[test]
fn a_chain_named_like_those_of_iptables_in_a_family_that_iptables_has_not_is_opened() {
    firewall(Firewall::Manage)
        .tuned(|tuning| {
            tuning.firewall.input_chains = Fact::Known(vec![chain("filter", "INPUT", vec![])]);
        })
        .check("firewall_of_family_inet");
}
