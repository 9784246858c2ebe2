use host::facts::Sourced;
use host::facts::network::{Address, ApiServer, Connection, Depends, Peer, Route};

use super::*;
use crate::test_network::{link, machine_with, nic};

fn found<T>(value: T) -> Sourced<T> {
    Sourced {
        source: "the test".to_owned(),
        fact: Fact::Known(value),
    }
}

fn route(table: &str, to: &str, device: &str) -> Route {
    Route {
        table: table.to_owned(),
        to: to.parse().unwrap(),
        devices: vec![device.to_owned()],
        gateways: Vec::new(),
        protocol: None,
    }
}

fn with_address(mut link: Link, net: &str) -> Link {
    link.addresses.push(Address {
        net: net.parse().unwrap(),
        scope: "global".to_owned(),
        dynamic: false,
        duplicate: false,
    });
    link
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A network in which everything was read and there is nothing.
fn network(links: &[(&str, Link)], routes: Vec<Route>) -> Network {
    let links = links
        .iter()
        .map(|(name, link)| ((*name).to_owned(), link.clone()));
    Network {
        links: found(links.collect()),
        routes: found(routes),
        rules: found(Vec::new()),
        depends: Depends {
            api_servers: found(Vec::new()),
            connections: found(Vec::new()),
            peers: found(Vec::new()),
        },
        ..Network::default()
    }
}

/// Why each NIC of the machine is protected; eth0 is `mlx5_0`, and so on.
fn why(network: &Network) -> Vec<Option<String>> {
    let machine = machine_with(vec![nic(0, "eth0"), nic(1, "eth1")]);
    let protected = protected(network, &machine, &BTreeSet::new());
    machine.nics.iter().map(|nic| protected.why(nic)).collect()
}

#[test]
fn a_default_route_of_any_table_and_family_protects() {
    let links = [("eth0", link(2)), ("eth1", link(3))];
    let main = network(&links, vec![route("main", "0.0.0.0/0", "eth0")]);
    assert_eq!(
        why(&main),
        [
            Some("carries a default route: 0.0.0.0/0 in table main".to_owned()),
            None
        ]
    );
    let six = network(&links, vec![route("101", "::/0", "eth1")]);
    assert_eq!(
        why(&six),
        [
            None,
            Some("carries a default route: ::/0 in table 101".to_owned())
        ]
    );
    let halves = network(&links, vec![route("main", "128.0.0.0/1", "eth0")]);
    assert!(why(&halves)[0].is_some());
    let connected = network(&links, vec![route("main", "10.0.0.0/8", "eth0")]);
    assert_eq!(why(&connected), [None, None]);
}

/// network-operator#2176, #1515, #2258 (O63): the management bond has a port of the RDMA card.
#[test]
fn ports_below_bonds_vlans_and_bridges_are_protected() {
    let over = |kind: &str, lower: Option<&str>| Link {
        kind: Some(kind.to_owned()),
        lower: lower.map(str::to_owned),
        ..link(9)
    };
    let slave = |master: &str| Link {
        master: Some(master.to_owned()),
        ..link(2)
    };
    let stack = network(
        &[
            ("eth0", slave("bond0")),
            ("eth1", link(3)),
            ("bond0", over("bond", None)),
            (
                "bond0.7",
                Link {
                    master: Some("br0".to_owned()),
                    ..over("vlan", Some("bond0"))
                },
            ),
            ("br0", over("bridge", None)),
        ],
        vec![route("main", "0.0.0.0/0", "br0")],
    );
    assert_eq!(
        why(&stack),
        [
            Some("carries a default route: 0.0.0.0/0 in table main".to_owned()),
            None
        ]
    );
    let by_sysfs = Link {
        uppers: ["macvlan0".to_owned()].into(),
        ..link(2)
    };
    let macvlan = network(
        &[("eth0", by_sysfs), ("eth1", link(3)), ("macvlan0", link(8))],
        vec![route("main", "0.0.0.0/0", "macvlan0")],
    );
    assert!(why(&macvlan)[0].is_some());
}

#[test]
fn the_ports_of_an_open_vswitch_are_protected_by_its_internal_interfaces() {
    let switch = || Link {
        kind: Some("openvswitch".to_owned()),
        ..link(7)
    };
    let port = Link {
        master: Some("ovs-system".to_owned()),
        ..link(2)
    };
    let ovn = network(
        &[
            ("eth0", port),
            ("eth1", link(3)),
            ("ovs-system", switch()),
            ("br-ex", switch()),
        ],
        vec![route("main", "0.0.0.0/0", "br-ex")],
    );
    assert!(matches!(why(&ovn).as_slice(), [Some(_), None]));
}

#[test]
fn a_virtual_function_protects_its_physical_one() {
    let mut vf = nic(1, "eth1");
    vf.physfn = nic(0, "eth0").pci;
    let machine = machine_with(vec![nic(0, "eth0"), vf, nic(2, "eth2")]);
    let links = [("eth0", link(2)), ("eth1", link(3)), ("eth2", link(4))];
    let network = network(&links, vec![route("main", "0.0.0.0/0", "eth1")]);
    let protected = protected(&network, &machine, &BTreeSet::new());
    let shown: Vec<bool> = machine
        .nics
        .iter()
        .map(|nic| protected.why(nic).is_some())
        .collect();
    assert_eq!(shown, [true, true, false]);
}

#[test]
fn the_nodes_addresses_and_the_kubelets_connections_protect() {
    let links = [
        ("eth0", with_address(link(2), "10.0.0.5/24")),
        ("eth1", with_address(link(3), "10.1.0.5/24")),
    ];
    let mut network = network(&links, Vec::new());
    network.depends.connections = found(vec![Connection {
        local: ip("10.1.0.5"),
        remote: ip("10.9.0.1"),
        port: 10250,
    }]);
    let machine = machine_with(vec![nic(0, "eth0"), nic(1, "eth1")]);
    let protected = protected(&network, &machine, &[ip("10.0.0.5")].into());
    let shown: Vec<_> = machine.nics.iter().map(|nic| protected.why(nic)).collect();
    assert_eq!(
        shown,
        [
            Some("has the node's address: 10.0.0.5".to_owned()),
            Some("carries the kubelet's connection: 10.1.0.5".to_owned()),
        ]
    );
    assert!(machine.nics.iter().all(|nic| protected.own(nic).is_some()));
}

#[test]
fn the_way_to_the_api_server_is_the_closest_route_of_each_table() {
    let links = [("eth0", link(2)), ("eth1", link(3))];
    let routes = vec![
        route("main", "10.0.0.0/8", "eth0"),
        route("main", "10.2.0.0/16", "eth1"),
    ];
    let mut network = network(&links, routes);
    network.depends.api_servers = found(vec![ApiServer {
        host: "10.2.0.1".to_owned(),
        port: 6443,
        addresses: [ip("10.2.0.1")].into(),
    }]);
    assert_eq!(
        why(&network),
        [
            None,
            Some("is the way to the API server: 10.2.0.1 by 10.2.0.0/16 in table main".to_owned())
        ]
    );
}

#[test]
fn a_server_without_an_address_is_found_by_the_kubelets_connection_or_everything_is_protected() {
    let links = [("eth0", link(2)), ("eth1", link(3))];
    let mut network = network(&links, vec![route("main", "10.0.0.0/8", "eth0")]);
    network.depends.api_servers = found(vec![ApiServer {
        host: "api.example".to_owned(),
        port: 6443,
        addresses: BTreeSet::new(),
    }]);
    assert!(why(&network).iter().all(Option::is_some));
    network.depends.connections = found(vec![Connection {
        local: ip("10.0.0.5"),
        remote: ip("10.0.0.1"),
        port: 6443,
    }]);
    assert!(matches!(why(&network).as_slice(), [Some(_), None]));
}

/// Storage over a rail is usual: it stops changes, and takes the NIC from nobody.
#[test]
fn peers_of_mounts_protect_and_make_no_management_nic() {
    let links = [("eth0", link(2)), ("eth1", link(3))];
    let mut network = network(&links, vec![route("main", "10.5.0.0/16", "eth1")]);
    network.depends.peers = found(vec![Peer {
        address: ip("10.5.0.1"),
        what: "nfs4 at /data".to_owned(),
    }]);
    let seen = "is the way to a mounted: nfs4 at /data, 10.5.0.1 by 10.5.0.0/16 in table main";
    assert_eq!(why(&network), [None, Some(seen.to_owned())]);
    let machine = machine_with(vec![nic(0, "eth0"), nic(1, "eth1")]);
    let protected = protected(&network, &machine, &BTreeSet::new());
    assert!(protected.own(&machine.nics[1]).is_none());
}

/// Rails with a gateway have a table each, and routers advertise themselves on them.
#[test]
fn default_routes_of_rails_make_no_management_nic() {
    let links = [("eth0", link(2)), ("eth1", link(3))];
    let mut advertised = route("main", "::/0", "eth1");
    advertised.protocol = Some("ra".to_owned());
    let network = network(&links, vec![route("101", "0.0.0.0/0", "eth0"), advertised]);
    let machine = machine_with(vec![nic(0, "eth0"), nic(1, "eth1")]);
    let protected = protected(&network, &machine, &BTreeSet::new());
    let own: Vec<_> = machine
        .nics
        .iter()
        .map(|nic| protected.own(nic).is_some())
        .collect();
    assert_eq!(own, [false, false]);
    assert!(machine.nics.iter().all(|nic| protected.why(nic).is_some()));
}

#[test]
fn what_cannot_be_read_protects_everything_and_proves_nothing() {
    let links = [("eth0", link(2)), ("eth1", link(3))];
    let whole = network(&links, Vec::new());
    assert_eq!(why(&whole), [None, None]);
    let mut broken = [whole.clone(), whole.clone(), whole.clone(), whole.clone()];
    broken[0].routes.fact = Fact::Unreadable("EIO".to_owned());
    broken[1].depends.connections.fact = Fact::Unreadable("EIO".to_owned());
    broken[2].depends.peers.fact = Fact::Unreadable("EIO".to_owned());
    broken[3].depends.api_servers.fact = Fact::Unreadable("EIO".to_owned());
    for network in broken.iter().chain([&Network {
        links: unreadable_links(),
        ..whole.clone()
    }]) {
        let machine = machine_with(vec![nic(0, "eth0")]);
        let protected = protected(network, &machine, &BTreeSet::new());
        let why = protected.why(&machine.nics[0]).unwrap();
        assert!(why.ends_with("could not be read: EIO"), "{why}");
        assert!(protected.own(&machine.nics[0]).is_none());
    }
}

fn unreadable_links() -> Sourced<BTreeMap<String, Link>> {
    Sourced {
        source: String::new(),
        fact: Fact::Unreadable("EIO".to_owned()),
    }
}
