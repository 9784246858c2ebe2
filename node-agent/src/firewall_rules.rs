//! How each keeper of a firewall writes our rules: as it lists them, and as arguments of its tool. Pure; planner and executor
//! share it. Values come typed, so that no argument holds anything but addresses, ports and plain names.

use host::facts::tuning::firewall::Accept;

use crate::action::{Opening, Via};

/// The mark of our rules, where a keeper has comments.
pub const COMMENT: &str = "gpurdma.dev";

/// A run of a tool: its name and its arguments.
pub type Run = (&'static str, Vec<String>);

/// The rule as firewalld lists it.
#[must_use]
pub fn rich_rule(opening: &Opening) -> String {
    let family = if opening.is_v4() { "ipv4" } else { "ipv6" };
    format!(
        "rule family=\"{family}\" source address=\"{}\" port port=\"{}\" protocol=\"{}\" accept",
        opening.cidr(),
        ports(opening, '-'),
        opening.protocol().name()
    )
}

/// The rule as ufw's file lists it, comment left out.
#[must_use]
pub fn ufw_tuple(opening: &Opening) -> String {
    let any = if opening.is_v4() { "0.0.0.0/0" } else { "::/0" };
    format!(
        "allow {} {} {any} any {} in",
        opening.protocol().name(),
        ports(opening, ':'),
        opening.cidr()
    )
}

fn ports(opening: &Opening, between: char) -> String {
    match opening.ports() {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}{between}{last}"),
    }
}

/// What opens the firewall, in the order in which it runs.
#[must_use]
pub fn opens(via: &Via, opening: &Opening) -> Vec<Run> {
    match via {
        Via::Firewalld { zone } => firewalld(zone, "add", opening),
        Via::Ufw => vec![ufw(&[], opening, &["comment", COMMENT])],
        Via::Nft {
            family,
            table,
            chain,
        } => {
            let quoted = format!("\"{COMMENT}\"");
            let mut arguments = words(&["insert", "rule", family, table, chain]);
            arguments.extend(packets(opening));
            arguments.extend(words(&["accept", "comment", &quoted]));
            vec![("nft", arguments)]
        }
    }
}

/// What closes it again; a rule of nftables is named by its handle.
#[must_use]
pub fn closes(via: &Via, opening: &Opening, handles: &[u64]) -> Vec<Run> {
    match via {
        Via::Firewalld { zone } => firewalld(zone, "remove", opening),
        Via::Ufw => vec![ufw(&["delete"], opening, &[])],
        Via::Nft {
            family,
            table,
            chain,
        } => {
            let delete = |handle: &u64| {
                let handle = handle.to_string();
                (
                    "nft",
                    words(&["delete", "rule", family, table, chain, "handle", &handle]),
                )
            };
            handles.iter().map(delete).collect()
        }
    }
}

fn packets(opening: &Opening) -> Vec<String> {
    let family = if opening.is_v4() { "ip" } else { "ip6" };
    let cidr = opening.cidr();
    let ports = ports(opening, '-');
    words(&[
        family,
        "saddr",
        &cidr,
        opening.protocol().name(),
        "dport",
        &ports,
    ])
}

/// Now, and after the next start.
fn firewalld(zone: &str, verb: &str, opening: &Opening) -> Vec<Run> {
    let zone = format!("--zone={zone}");
    let rule = format!("--{verb}-rich-rule={}", rich_rule(opening));
    vec![
        ("firewall-cmd", words(&[&zone, &rule])),
        ("firewall-cmd", words(&["--permanent", &zone, &rule])),
    ]
}

fn ufw(before: &[&str], opening: &Opening, after: &[&str]) -> Run {
    let mut arguments = words(before);
    let (cidr, ports) = (opening.cidr(), ports(opening, ':'));
    let name = opening.protocol().name();
    arguments.extend(words(&[
        "allow", "proto", name, "from", &cidr, "to", "any", "port", &ports,
    ]));
    arguments.extend(words(after));
    ("ufw", arguments)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Whether `accept` is our rule for exactly these packets. nft lists a range of one address, and one of all, in its own way.
#[must_use]
pub fn is_ours(accept: &Accept, opening: &Opening) -> bool {
    let (packets, cidr) = (&accept.packets, opening.cidr());
    let same_source = match &packets.source {
        Some(source) => {
            *source == cidr || format!("{source}/32") == cidr || format!("{source}/128") == cidr
        }
        None => cidr.ends_with("/0"),
    };
    accept.comment.as_deref() == Some(COMMENT)
        && same_source
        && packets.protocol.as_deref() == Some(opening.protocol().name())
        && packets.ports == Some(opening.ports())
}

/// What a person would type to open legacy iptables.
#[must_use]
pub fn legacy_command(opening: &Opening) -> String {
    let program = if opening.is_v4() {
        "iptables-legacy"
    } else {
        "ip6tables-legacy"
    };
    by_iptables(program, opening)
}

fn by_iptables(program: &str, opening: &Opening) -> String {
    format!(
        "{program} -I INPUT -p {} -s {} --dport {} -m comment --comment {COMMENT} -j ACCEPT",
        opening.protocol().name(),
        opening.cidr(),
        ports(opening, ':')
    )
}

/// What a person would type to open it.
#[must_use]
pub fn command(via: &Via, opening: &Opening) -> String {
    match via {
        Via::Nft {
            family,
            table,
            chain,
        } if family != "inet" && table == "filter" && chain == "INPUT" => {
            let program = if family == "ip6" {
                "ip6tables"
            } else {
                "iptables"
            };
            by_iptables(program, opening)
        }
        _ => {
            let run = opens(via, opening).pop();
            run.map(|(tool, arguments)| format!("{tool} {}", shown(&arguments)))
                .unwrap_or_default()
        }
    }
}

fn shown(arguments: &[String]) -> String {
    let quoted = arguments.iter().map(|word| {
        if word.contains([' ', '"']) {
            format!("'{word}'")
        } else {
            word.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
