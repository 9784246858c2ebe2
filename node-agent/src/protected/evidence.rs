//! What shows that the node depends on an interface, interface by interface. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use host::facts::network::{Link, Network, Route};
use topology::fact::Fact;

use super::{Reason, Rule};

/// Interface → reason, as often as there is one.
type Found = Vec<(String, Reason)>;

/// Tables of the node's own traffic.
const OWN_TABLES: [&str; 4] = ["main", "default", "local", "254"];

/// All evidence, and what could not be read; the first thing stands for all.
pub(super) fn evidence(
    network: &Network,
    links: &BTreeMap<String, Link>,
    node_addresses: &BTreeSet<IpAddr>,
) -> (Found, Option<String>) {
    let mut found = Found::new();
    let mut unread = None;
    let routes: &[Route] = match &network.routes.fact {
        Fact::Known(routes) => routes,
        Fact::Absent => &[],
        Fact::Unreadable(why) => {
            unread = Some(why.clone());
            &[]
        }
    };
    for route in routes.iter().filter(|route| route.is_default()) {
        add(&mut found, route, Rule::DefaultRoute, &shown(route));
    }
    for address in node_addresses {
        holders(&mut found, links, *address, Rule::NodeAddress);
    }
    let mut note = |why: Option<String>| unread = unread.take().or(why);
    note(connections(&mut found, network, links));
    note(servers(&mut found, network, routes));
    note(peers(&mut found, network, routes));
    (found, unread)
}

fn shown(route: &Route) -> String {
    format!("{} in table {}", route.to, route.table)
}

/// Every interface of a route.
fn add(found: &mut Found, route: &Route, rule: Rule, seen: &str) {
    let advertised = route.protocol.as_deref() == Some("ra");
    let own = rule != Rule::Peer && OWN_TABLES.contains(&route.table.as_str()) && !advertised;
    let reason = Reason {
        rule,
        seen: seen.to_owned(),
        own,
    };
    let devices = route.devices.iter();
    found.extend(devices.map(|device| (device.clone(), reason.clone())));
}

/// Interfaces that have `address`.
fn holders(found: &mut Found, links: &BTreeMap<String, Link>, address: IpAddr, rule: Rule) {
    let has = |link: &Link| link.addresses.iter().any(|one| one.net.addr() == address);
    let holders = links.iter().filter(|(_, link)| has(link));
    let reason = Reason {
        rule,
        seen: address.to_string(),
        own: true,
    };
    found.extend(holders.map(|(name, _)| (name.clone(), reason.clone())));
}

fn connections(
    found: &mut Found,
    network: &Network,
    links: &BTreeMap<String, Link>,
) -> Option<String> {
    match &network.depends.connections.fact {
        Fact::Known(connections) => {
            for connection in connections {
                holders(found, links, connection.local, Rule::KubeletConnection);
            }
            None
        }
        Fact::Absent => None,
        Fact::Unreadable(why) => Some(why.clone()),
    }
}

/// A name without an address is reached somehow: what the kubelet's connections show is enough, where there are any.
fn servers(found: &mut Found, network: &Network, routes: &[Route]) -> Option<String> {
    let depends = &network.depends;
    let servers = match &depends.api_servers.fact {
        Fact::Known(servers) => servers,
        Fact::Absent => return None,
        Fact::Unreadable(why) => return Some(why.clone()),
    };
    let connected = |port: u16| {
        let all = depends.connections.fact.known().into_iter().flatten();
        all.filter(move |connection| connection.port == port)
            .map(|connection| connection.remote)
    };
    let mut unknown = None;
    for server in servers {
        let addresses: BTreeSet<IpAddr> = server
            .addresses
            .iter()
            .copied()
            .chain(connected(server.port))
            .collect();
        if addresses.is_empty() {
            unknown = Some(format!(
                "the address of the API server {}: neither /etc/hosts nor a connection of the kubelet tells it",
                server.host
            ));
        }
        let outside = addresses.iter().filter(|address| !address.is_loopback());
        for address in outside {
            towards(found, routes, *address, Rule::ApiServer, "");
        }
    }
    unknown
}

fn peers(found: &mut Found, network: &Network, routes: &[Route]) -> Option<String> {
    match &network.depends.peers.fact {
        Fact::Known(peers) => {
            for peer in peers {
                towards(found, routes, peer.address, Rule::Peer, &peer.what);
            }
            None
        }
        Fact::Absent => None,
        Fact::Unreadable(why) => Some(why.clone()),
    }
}

/// The closest routes to `address` of every table: which rule picks the table is not worked out.
fn towards(found: &mut Found, routes: &[Route], address: IpAddr, rule: Rule, what: &str) {
    let mut closest: BTreeMap<&str, u8> = BTreeMap::new();
    let leading = || routes.iter().filter(|route| route.to.contains(&address));
    for route in leading() {
        let longest = closest.entry(&route.table).or_default();
        *longest = (*longest).max(route.to.prefix_len());
    }
    let is_closest =
        |route: &&Route| closest.get(route.table.as_str()) == Some(&route.to.prefix_len());
    let gap = if what.is_empty() { "" } else { ", " };
    for route in leading().filter(is_closest) {
        let seen = format!("{what}{gap}{address} by {}", shown(route));
        add(found, route, rule, &seen);
    }
}
