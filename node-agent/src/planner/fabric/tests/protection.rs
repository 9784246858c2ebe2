//! Interfaces that the node itself depends on, and ports of which nothing is known.

use super::*;

const MTU: &str = "fabric: {roce: {netdevMtu: 9000}}";

/// network-operator#2176, #1515, #2258 (O63): the management port is on the same card, and the node dropped off.
#[test]
fn management_port_of_the_same_card() {
    let mut scene = Scene::new(vec![nic(0, "eth0"), nic(1, "eth1")]);
    scene.default_route("main", "eth1");
    scene.check("management_port_of_the_same_card_is_left_alone", MTU);
}

/// O63 again, with the bond of two ports that has the node's address.
#[test]
fn management_bond() {
    let mut scene = Scene::new(vec![nic(0, "eth0"), nic(1, "eth1"), nic(2, "eth2")]);
    scene.over("bond0", "bond", None);
    for port in ["eth0", "eth1"] {
        scene.link(port).master = Some("bond0".to_owned());
    }
    scene.address("bond0", "10.0.0.5/24");
    scene.state.node_addresses = ["10.0.0.5".parse().unwrap()].into();
    scene.check("ports_of_the_management_bond_are_left_alone", MTU);
}

#[test]
fn the_cluster_names_a_protected_nic() {
    let mut scene = roce_node();
    scene.default_route("main", "eth0");
    let config = |rule: &str| {
        format!("nics: [{{match: {rule}, role: Compute}}]\nfabric: {{roce: {{netdevMtu: 9000}}}}")
    };
    scene.check("a_named_nic_is_set_all_the_same", &config("{netdev: eth0}"));
    scene.check(
        "a_rule_for_many_names_none",
        &config("{linkLayer: Ethernet, netdev: 'eth*'}"),
    );
}

#[test]
fn what_is_not_known_is_left_alone() {
    let mut routes = roce_node();
    routes.network().routes.fact =
        Fact::Unreadable("`ip -j -4 route show table all`: no answer within 5 s".to_owned());
    routes.check("unreadable_routes_protect_everything", MTU);
    let mut links = roce_node();
    links.network().links.fact =
        Fact::Unreadable("start `ip -j -d address show`: No such file or directory".to_owned());
    links.check("unreadable_interfaces_plan_nothing", MTU);
    let mut layer = roce_node();
    layer.machine.nics[0].ports[0].link_layer = Fact::Unreadable("read link_layer: EIO".to_owned());
    layer.check("port_of_unknown_link_layer_is_left_alone", MTU);
}

#[test]
fn nics_that_are_not_used_are_left_alone() {
    let mut scene = roce_node();
    scene.machine.nics[0].role = topology::machine::NicRole::Ignore;
    assert_eq!(scene.plan(MTU), Plan::default());
}
