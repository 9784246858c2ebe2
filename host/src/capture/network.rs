//! Answers of the field's tools about the network, laid into the copy where [`crate::facts::network`] looks for them. Of each
//! answer only the keys that are read, with addresses and names masked: descriptions, hardware addresses and whatever a later
//! version of a tool adds are left out.

use serde_json::{Map, Value};
use topology::fact::Fact;

use super::Capture;
use super::mask::Masks;
use crate::facts::RECORDED;
use crate::facts::network::{UNSUPPORTED, is_ethernet, questions, questions_of};
use crate::machine::{Options, machine};
use crate::root::RootError;

/// Keys whose values are copied as they are.
const PLAIN: &[&str] = &[
    "action",
    "active",
    "addr_info",
    "algorithm",
    "auto",
    "buffer_size",
    "cee",
    "config",
    "dadfailed",
    "default_prio",
    "delay",
    "dscp_prio",
    "dynamic",
    "ets_cap",
    "family",
    "flags",
    "host",
    "ieee",
    "ifindex",
    "info_data",
    "info_kind",
    "info_slave_kind",
    "key",
    "link_type",
    "linkinfo",
    "lld_managed",
    "macsec_bypass",
    "max_mtu",
    "metric",
    "min_mtu",
    "mode",
    "mtu",
    "nexthops",
    "num_tx_queues",
    "operstate",
    "parentbus",
    "parentdev",
    "pfc_cap",
    "prefixlen",
    "prio_buffer",
    "prio_pfc",
    "prio_tc",
    "priority",
    "protocol",
    "reco_prio_tc",
    "reco_tc_bw",
    "reco_tc_tsa",
    "scope",
    "srclen",
    "static",
    "tc_bw",
    "tc_tsa",
    "total_size",
    "type",
    "via",
];
/// Keys with a name of an interface.
const NAMES: &[&str] = &["dev", "ifname", "link", "master"];
/// Keys with an address or a network. `host` is one in a next hop, and a switch in what `dcb` says.
const ADDRESSES: &[&str] = &["dst", "gateway", "host", "local", "src"];

pub(super) fn copy(capture: &mut Capture<'_>) -> Result<(), RootError> {
    for question in questions() {
        let answer = question.to_record(capture.from);
        record(capture, &question.recorded, answer)?;
    }
    for name in ethernet(capture) {
        let masked = capture.masks.name(&name);
        let (own, shown) = (questions_of(&name), questions_of(&masked));
        for (question, as_shown) in own.iter().zip(&shown) {
            let answer = question.to_record(capture.from);
            record(capture, &as_shown.recorded, answer)?;
        }
    }
    Ok(())
}

/// Ethernet interfaces of RDMA devices.
fn ethernet(capture: &Capture<'_>) -> Vec<String> {
    let machine = machine(capture.from, &Options::default());
    let nics = machine.nics.iter().filter(|nic| is_ethernet(nic));
    let mut names: Vec<_> = nics.flat_map(|nic| nic.netdevs.iter().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

fn record(capture: &mut Capture<'_>, name: &str, answer: Fact<String>) -> Result<(), RootError> {
    let path = format!("{RECORDED}/{name}");
    match answer {
        Fact::Known(text) => match shown(&mut capture.masks, text.trim()) {
            Ok(text) => capture.into.put(&path, format!("{text}\n")),
            Err(error) => {
                capture.left_out.push(format!("{name}: {error}"));
                Ok(())
            }
        },
        Fact::Absent => Ok(()),
        Fact::Unreadable(why) => {
            capture.left_out.push(why);
            Ok(())
        }
    }
}

/// The answer as it may be shown; one of nothing, or that there is no such thing, as it is.
fn shown(masks: &mut Masks, text: &str) -> Result<String, serde_json::Error> {
    if text.is_empty() || text == UNSUPPORTED {
        return Ok(text.to_owned());
    }
    let value: Value = serde_json::from_str(text)?;
    Ok(masked(masks, "", value).to_string())
}

fn masked(masks: &mut Masks, key: &str, value: Value) -> Value {
    match value {
        Value::Object(entries) => Value::Object(object(masks, entries)),
        Value::Array(list) => {
            let list = list.into_iter().map(|one| masked(masks, key, one));
            Value::Array(list.collect())
        }
        Value::String(text) if NAMES.contains(&key) => Value::String(masks.link(&text)),
        Value::String(text) if key == "table" => Value::String(masks.table(&text)),
        Value::String(text) if ADDRESSES.contains(&key) => Value::String(masks.address(&text)),
        other => other,
    }
}

fn object(masks: &mut Masks, entries: Map<String, Value>) -> Map<String, Value> {
    let known = |key: &str| {
        let lists = [PLAIN, NAMES, ADDRESSES];
        key == "table" || lists.iter().any(|list| list.contains(&key))
    };
    let kept = entries.into_iter().filter(|(key, _)| known(key));
    kept.map(|(key, value)| {
        let value = masked(masks, &key, value);
        (key, value)
    })
    .collect()
}
