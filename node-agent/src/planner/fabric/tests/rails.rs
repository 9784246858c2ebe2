//! Addresses and masks.

use super::*;

const TWO: &str = "rails: [{pci: '0000:01:00.0', rail: 0}, {pci: '0000:02:00.0', rail: 1}]\naddresses: [{rail: 0, address: 10.10.0.7/16}, {rail: 1, address: 10.11.0.7/16}]";
const ONE: &str =
    "rails: [{pci: '0000:01:00.0', rail: 0}]\naddresses: [{rail: 0, address: 10.10.0.7/16}]";

fn two_nics() -> Scene {
    Scene::new(vec![nic(0, "eth0"), nic(1, "eth1")])
}

/// G45, G49: without an address there is no GID of version 2 that can be routed, and NCCL fails.
#[test]
fn rails_get_their_addresses() {
    two_nics().check("each_rail_gets_its_address", TWO);
    let mut down = roce_node();
    down.link("eth0").up = false;
    down.check("interface_that_is_off_is_switched_on", ONE);
    let six =
        "rails: [{pci: '0000:01:00.0', rail: 0}]\naddresses: [{rail: 0, address: 'fd00:10::7/64'}]";
    roce_node().check("addresses_may_be_ipv6", six);
    // The operator's map holds what rules say, in its reading of them: a rule that it cannot decide changes no rail here.
    let ruled = format!(
        "{TWO}\nfabric: {{rails: [{{match: {{netdev: eth1}}, rail: 0}}, {{match: {{netdev: eth0}}, rail: 1}}]}}"
    );
    two_nics().check("the_operators_map_counts_alone", &ruled);
}

#[test]
fn addresses_of_someone_else() {
    let mut near = roce_node();
    near.address("eth0", "10.10.0.9/16");
    near.check("someone_elses_address_in_the_subnet_is_kept", ONE);
    let mut far = roce_node();
    far.address("eth0", "192.168.7.1/24");
    far.check("someone_elses_address_elsewhere_is_no_matter", ONE);
    let mut mask = roce_node();
    mask.address("eth0", "10.10.0.7/24");
    mask.check("same_address_with_another_mask", ONE);
    let mut moved = two_nics();
    moved.address("eth1", "10.10.0.7/16");
    moved.check("address_is_on_another_interface", ONE);
}

#[test]
fn address_that_another_machine_has() {
    let mut scene = roce_node();
    scene.address("eth0", "fd00:10::7/64").duplicate = true;
    let six =
        "rails: [{pci: '0000:01:00.0', rail: 0}]\naddresses: [{rail: 0, address: 'fd00:10::7/64'}]";
    scene.check("another_machine_has_the_address", six);
}

#[test]
fn the_operator_gives_another_mask() {
    let mut scene = roce_node();
    scene.address("eth0", "10.10.0.7/24");
    let netdev = scene.netdev("eth0");
    let change = |present| FabricChange::Address {
        netdev: netdev.clone(),
        address: "10.10.0.7/24".parse().unwrap(),
        present,
    };
    scene.did(change(true), change(false));
    scene.check("own_address_makes_room_for_another_mask", ONE);
}

#[test]
fn rails_without_an_interface() {
    roce_node().check("rail_without_a_nic", TWO);
    let mut moved = roce_node();
    moved.links().clear();
    moved.check("interface_is_in_another_namespace", ONE);
    let both = "rails: [{pci: '0000:01:00.0', rail: 0}, {pci: '0000:02:00.0', rail: 0}]\naddresses: [{rail: 0, address: 10.10.0.7/16}]";
    two_nics().check("two_nics_on_one_rail", both);
    let mut protected = roce_node();
    protected.default_route("main", "eth0");
    protected.check("rail_of_a_protected_nic", ONE);
}

#[test]
fn addresses_that_are_none() {
    let config = "rails: [{pci: '0000:01:00.0', rail: 0}]\naddresses: [{rail: 0, address: 10.10.0.0/16}, {rail: 1, address: 10.11.0.7}]";
    roce_node().check("addresses_that_are_no_hosts", config);
}

#[test]
fn rails_in_one_subnet() {
    let config = "rails: [{pci: '0000:01:00.0', rail: 0}, {pci: '0000:02:00.0', rail: 1}]\naddresses: [{rail: 0, address: 10.10.0.7/16}, {rail: 1, address: 10.10.1.7/16}]";
    two_nics().check("rails_share_a_subnet", config);
}

/// The operator must not give these to anyone, or must give this node another one.
#[test]
fn addresses_that_the_operator_did_not_give_are_in_use() {
    let ranges =
        "fabric: {addresses: [{rail: 0, cidr: 10.10.0.0/16}, {rail: 1, cidr: 'fd00:10::/64'}]}";
    let in_use = |scene: &Scene, config: &str| -> Vec<String> {
        let plan = scene.plan(config);
        plan.in_use.iter().map(ToString::to_string).collect()
    };
    let mut scene = two_nics();
    scene.address("eth0", "10.10.0.9/16");
    scene.address("eth1", "10.11.0.9/16");
    scene.address("eth1", "fd00:10::9/64").scope = "link".to_owned();
    assert_eq!(
        in_use(&scene, ranges),
        ["10.10.0.9"],
        "before any was given"
    );
    let own = format!("{ONE}\n{ranges}");
    let mut given = two_nics();
    given.address("eth0", "10.10.0.7/16");
    assert_eq!(in_use(&given, &own), [""; 0], "as it was given");
    let mut moved = two_nics();
    moved.address("eth1", "10.10.0.7/16");
    assert_eq!(
        in_use(&moved, &own),
        ["10.10.0.7"],
        "someone put it elsewhere"
    );
    let netdev = moved.netdev("eth1");
    let change = |present| FabricChange::Address {
        netdev: netdev.clone(),
        address: "10.10.0.7/16".parse().unwrap(),
        present,
    };
    moved.did(change(true), change(false));
    assert_eq!(
        in_use(&moved, &own),
        [""; 0],
        "this agent did, and takes it away"
    );
    let mut twice = roce_node();
    twice.address("eth0", "10.10.0.7/16").duplicate = true;
    assert_eq!(
        in_use(&twice, &own),
        ["10.10.0.7"],
        "another machine has it too"
    );
}
