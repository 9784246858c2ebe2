//! Chains of nftables that see what the host receives, from `nft -j list ruleset` (`libnftables-json(5)`). Pure. A rule that is
//! more than an accept of packets by source, protocol and port is not understood here, and proves nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A base chain on the input hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputChain {
    /// `ip`, `ip6` or `inet`.
    pub family: String,
    /// Table.
    pub table: String,
    /// Name.
    pub name: String,
    /// Place among the chains of the hook.
    pub priority: i64,
    /// Whether what no rule takes is dropped: by policy, or by a last rule for all packets.
    pub drops: bool,
    /// Rules that accept packets by source, protocol and port.
    pub accepts: Vec<Accept>,
}

/// A rule that accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accept {
    /// Name of the rule in its chain.
    pub handle: u64,
    /// Its comment.
    pub comment: Option<String>,
    /// What it accepts.
    pub packets: Packets,
}

/// Packets by source, protocol and destination port; `None` is any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Packets {
    /// `10.0.0.0/16` or a single address.
    pub source: Option<String>,
    /// `tcp` or `udp`.
    pub protocol: Option<String>,
    /// First and last port.
    pub ports: Option<(u16, u16)>,
}

/// The input chains of a ruleset, in the order in which packets meet them.
pub fn parse(text: &str) -> Result<Vec<InputChain>, serde_json::Error> {
    let ruleset: Value = serde_json::from_str(text)?;
    let objects = ruleset["nftables"].as_array().cloned().unwrap_or_default();
    let mut chains: Vec<_> = objects
        .iter()
        .filter_map(|object| chain(&object["chain"]))
        .collect();
    for rule in objects.iter().map(|object| &object["rule"]) {
        let own = |chain: &&mut InputChain| {
            let is = |key: &str, value: &str| rule[key].as_str() == Some(value);
            is("family", &chain.family) && is("table", &chain.table) && is("chain", &chain.name)
        };
        if let Some(chain) = chains.iter_mut().find(own) {
            add(chain, rule);
        }
    }
    chains.sort_by(|a, b| {
        (a.priority, &a.family, &a.table, &a.name).cmp(&(b.priority, &b.family, &b.table, &b.name))
    });
    Ok(chains)
}

fn chain(chain: &Value) -> Option<InputChain> {
    let text = |key: &str| chain[key].as_str().map(str::to_owned);
    if text("hook")? != "input" || text("type")? != "filter" {
        return None;
    }
    Some(InputChain {
        family: text("family")?,
        table: text("table")?,
        name: text("name")?,
        priority: chain["prio"].as_i64().unwrap_or_default(),
        drops: text("policy").as_deref() == Some("drop"),
        accepts: Vec::new(),
    })
}

/// What does no more than count says nothing about which packets it is for.
fn add(chain: &mut InputChain, rule: &Value) {
    let expressions = rule["expr"].as_array().cloned().unwrap_or_default();
    let telling: Vec<_> = expressions
        .iter()
        .filter(|e| e.get("counter").is_none())
        .collect();
    if let [only] = telling[..]
        && (only.get("drop").is_some() || only.get("reject").is_some())
    {
        chain.drops = true;
    }
    if let Some(packets) = accepted(&telling) {
        chain.accepts.push(Accept {
            handle: rule["handle"].as_u64().unwrap_or_default(),
            comment: rule["comment"].as_str().map(str::to_owned),
            packets,
        });
    }
}

fn accepted(expressions: &[&Value]) -> Option<Packets> {
    let (verdict, matches) = expressions.split_last()?;
    verdict.get("accept")?;
    let mut packets = Packets::default();
    for expression in matches {
        narrow(&mut packets, expression.get("match")?)?;
    }
    Some(packets)
}

/// Takes one match in; `None` where it is of another kind.
fn narrow(packets: &mut Packets, found: &Value) -> Option<()> {
    if found["op"].as_str() != Some("==") {
        return None;
    }
    let (left, right) = (&found["left"]["payload"], &found["right"]);
    match (left["protocol"].as_str()?, left["field"].as_str()?) {
        ("ip" | "ip6", "saddr") => packets.source = Some(source(right)?),
        (protocol @ ("tcp" | "udp"), "dport") => {
            packets.protocol = Some(protocol.to_owned());
            packets.ports = Some(ports(right)?);
        }
        _ => return None,
    }
    Some(())
}

fn source(value: &Value) -> Option<String> {
    if let Some(address) = value.as_str() {
        return Some(address.to_owned());
    }
    let prefix = &value["prefix"];
    Some(format!(
        "{}/{}",
        prefix["addr"].as_str()?,
        prefix["len"].as_u64()?
    ))
}

fn ports(value: &Value) -> Option<(u16, u16)> {
    let port = |value: &Value| u16::try_from(value.as_u64()?).ok();
    if let Some(single) = port(value) {
        return Some((single, single));
    }
    let range = &value["range"];
    Some((port(range.get(0)?)?, port(range.get(1)?)?))
}
