//! Routes and rules: `ip -j route show table all`, `ip -j rule show` (iproute2 `ip/iproute.c`, `ip/iprule.c`).

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::ask::Question;
use crate::facts::Sourced;
use crate::root::Root;

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Name or number of its table.
    pub table: String,
    /// Where to.
    pub to: IpNet,
    /// Interfaces that it leads through.
    pub devices: Vec<String>,
    /// Next router.
    pub gateways: Vec<IpAddr>,
    /// Who made it: `kernel`, `static`, `dhcp`, `ra`, `bird`.
    pub protocol: Option<String>,
}

impl Route {
    /// Whether it leads everywhere; VPN clients write two halves of the world.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.to.prefix_len() <= 1
    }
}

/// A routing rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Priority.
    pub priority: u32,
    /// Source that it is for; `all`.
    pub from: String,
    /// Table that it leads to.
    pub table: Option<String>,
    /// Address family, 4 or 6.
    pub family: u8,
}

#[derive(Deserialize)]
struct Shown {
    #[serde(rename = "type")]
    kind: Option<String>,
    dst: Option<String>,
    dev: Option<String>,
    gateway: Option<String>,
    via: Option<Via>,
    table: Option<Name>,
    protocol: Option<Name>,
    #[serde(default)]
    nexthops: Vec<Hop>,
}

#[derive(Deserialize)]
struct Hop {
    dev: Option<String>,
    gateway: Option<String>,
    via: Option<Via>,
}

/// A gateway of the other address family.
#[derive(Deserialize)]
struct Via {
    host: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Number(u32),
}

impl Name {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

#[derive(Deserialize)]
struct ShownRule {
    #[serde(default)]
    priority: u32,
    #[serde(default)]
    src: String,
    srclen: Option<u8>,
    table: Option<Name>,
}

/// Both families' answers as one; the first that cannot be read stands for both.
fn both<T>(four: Sourced<Vec<T>>, six: Sourced<Vec<T>>) -> Sourced<Vec<T>> {
    let source = format!("{}, {}", four.source, six.source);
    // A kernel without IPv6 answers "not supported": no routes there.
    let list = |fact: Fact<Vec<T>>| match fact {
        Fact::Known(list) => Ok(list),
        Fact::Absent => Ok(Vec::new()),
        Fact::Unreadable(why) => Err(why),
    };
    let joined = list(four.fact).and_then(|mut four| {
        four.extend(list(six.fact)?);
        Ok(four)
    });
    Sourced::new(source, joined.map_or_else(Fact::Unreadable, Fact::Known))
}

/// Routes of a family, `-4` or `-6`.
pub(super) fn question(family: &str) -> Question<'_> {
    Question {
        program: "ip",
        arguments: vec!["-j", family, "route", "show", "table", "all"],
        recorded: format!("ip-route{family}.json"),
    }
}

/// Routing rules of a family, `-4` or `-6`.
pub(super) fn rule_question(family: &str) -> Question<'_> {
    Question {
        program: "ip",
        arguments: vec!["-j", family, "rule", "show"],
        recorded: format!("ip-rule{family}.json"),
    }
}

pub(super) fn routes(root: &Root) -> Sourced<Vec<Route>> {
    let ask = |family: &str, everywhere: &str| {
        let answer = question(family).ask::<Vec<Shown>>(root);
        let routes = |shown: Vec<Shown>| {
            let routes = shown.into_iter().filter_map(|one| route(one, everywhere));
            routes.collect::<Vec<_>>()
        };
        Sourced::new(answer.source, answer.fact.map(routes))
    };
    let mut routes = both(ask("-4", "0.0.0.0/0"), ask("-6", "::/0"));
    if let Fact::Known(routes) = &mut routes.fact {
        routes.sort();
    }
    routes
}

/// A network; a host's route has no prefix length.
fn net(text: &str) -> Option<IpNet> {
    let host = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse().ok().or_else(host)
}

/// Only routes that lead through an interface to somewhere else.
fn route(shown: Shown, everywhere: &str) -> Option<Route> {
    if shown.kind.is_some_and(|kind| kind != "unicast") {
        return None;
    }
    let to = match shown.dst?.as_str() {
        "default" => everywhere.parse().ok()?,
        text => net(text)?,
    };
    let mut route = Route {
        table: shown.table.map_or_else(|| "main".to_owned(), Name::text),
        to,
        devices: Vec::new(),
        gateways: Vec::new(),
        protocol: shown.protocol.map(Name::text),
    };
    let first = Hop {
        dev: shown.dev,
        gateway: shown.gateway,
        via: shown.via,
    };
    for hop in std::iter::once(first).chain(shown.nexthops) {
        let via = hop.via.and_then(|via| via.host);
        let gateway = hop.gateway.or(via);
        let gateway = gateway.and_then(|text| text.parse::<IpAddr>().ok());
        route.gateways.extend(gateway);
        route.devices.extend(hop.dev);
    }
    route.devices.sort();
    route.devices.dedup();
    Some(route)
}

pub(super) fn rules(root: &Root) -> Sourced<Vec<Rule>> {
    let ask = |family: u8| {
        let name = if family == 4 { "-4" } else { "-6" };
        let answer = rule_question(name).ask::<Vec<ShownRule>>(root);
        let rules = |shown: Vec<ShownRule>| shown.into_iter().map(|one| rule(one, family));
        Sourced::new(
            answer.source,
            answer.fact.map(|shown| rules(shown).collect()),
        )
    };
    both(ask(4), ask(6))
}

fn rule(shown: ShownRule, family: u8) -> Rule {
    let length = shown.srclen.map(|length| format!("/{length}"));
    Rule {
        priority: shown.priority,
        from: format!("{}{}", shown.src, length.unwrap_or_default()),
        table: shown.table.map(Name::text),
        family,
    }
}
