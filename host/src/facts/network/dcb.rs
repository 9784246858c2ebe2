//! Data centre bridging: `dcb -j {pfc,ets,app,dcbx,buffer} show dev` (iproute2 `dcb/`), trust by the out-of-tree driver's
//! `qos/trust`. In-tree mlx5 trusts DSCP while it has a DSCP map and the PCP else (`mlx5e_dcbnl_ieee_setapp`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use topology::fact::Fact;

use super::ask::Question;
use crate::facts::Sourced;
use crate::machine::nics::NET;
use crate::root::Root;

/// Priorities, traffic classes and flow control of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dcb {
    /// Who decides: `host`, or `lld_managed` where firmware or switch do.
    pub dcbx: Sourced<Vec<String>>,
    /// Priorities with flow control.
    pub pfc: Sourced<Vec<u8>>,
    /// Bandwidth by traffic class.
    pub ets: Sourced<Ets>,
    /// DSCP → priority.
    pub dscp: Sourced<BTreeMap<u8, u8>>,
    /// `dscp` or `pcp`, of out-of-tree drivers.
    pub trust: Sourced<String>,
    /// Buffer of each priority.
    pub buffers: Sourced<Vec<u8>>,
}

/// Enhanced transmission selection.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ets {
    /// Traffic class of each priority.
    pub priority_classes: Vec<u8>,
    /// `strict`, `ets` or `vendor`, by traffic class.
    pub algorithms: Vec<String>,
    /// Per cent of the bandwidth, by traffic class.
    pub shares: Vec<u8>,
}

/// Reads all of an interface's.
#[must_use]
pub fn dcb(root: &Root, name: &str) -> Dcb {
    let trust = format!("{NET}/{name}/qos/trust");
    Dcb {
        dcbx: ask(root, "dcbx", name, |answer| Some(flags(answer))),
        pfc: ask(root, "pfc", name, |answer| on(answer.get("prio_pfc")?)),
        ets: ask(root, "ets", name, |answer| {
            Some(Ets {
                priority_classes: numbers(answer.get("prio_tc")?)?,
                algorithms: texts(answer.get("tc_tsa")?),
                shares: numbers(answer.get("tc_bw")?)?,
            })
        }),
        dscp: ask(root, "app", name, |answer| {
            Some(answer.get("dscp_prio").map(pairs).unwrap_or_default())
        }),
        buffers: ask(root, "buffer", name, |answer| {
            numbers(answer.get("prio_buffer")?)
        }),
        trust: Sourced::new(trust.clone(), root.read(&trust)),
    }
}

/// Objects of the tool that are read.
pub(super) const OBJECTS: [&str; 5] = ["app", "buffer", "dcbx", "ets", "pfc"];

pub(super) fn question<'a>(object: &'a str, name: &'a str) -> Question<'a> {
    Question {
        program: "dcb",
        arguments: vec!["-j", object, "show", "dev", name],
        recorded: format!("dcb-{object}-{name}.json"),
    }
}

/// One object of the tool. It is absent where the driver has none, unreadable where the answer lacks the table.
fn ask<T>(root: &Root, object: &str, name: &str, read: impl Fn(&Value) -> Option<T>) -> Sourced<T> {
    let answer = question(object, name).ask::<Value>(root);
    let missing = || format!("{}: the answer has no such table", answer.source);
    let fact = match &answer.fact {
        Fact::Known(value) => read(value).map_or_else(|| Fact::Unreadable(missing()), Fact::Known),
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why.clone()),
    };
    Sourced::new(answer.source, fact)
}

fn flags(answer: &Value) -> Vec<String> {
    let set = answer.as_object().into_iter().flatten();
    let set = set.filter(|(_, value)| value.as_bool() == Some(true));
    set.map(|(name, _)| name.clone()).collect()
}

fn number(value: &Value) -> Option<u8> {
    value.as_u64().and_then(|number| u8::try_from(number).ok())
}

fn numbers(value: &Value) -> Option<Vec<u8>> {
    value.as_array()?.iter().map(number).collect()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts
        .filter_map(|text| Some(text.as_str()?.to_owned()))
        .collect()
}

/// Indices of what is on: the tool writes booleans, older ones `on` and `off`.
fn on(value: &Value) -> Option<Vec<u8>> {
    let is_on = |value: &Value| value.as_bool() == Some(true) || value.as_str() == Some("on");
    let on = value.as_array()?.iter().zip(0_u8..);
    Some(
        on.filter(|(value, _)| is_on(value))
            .map(|(_, index)| index)
            .collect(),
    )
}

/// `[[26, 3, " "], …]`: the tool's separator stands among the numbers.
fn pairs(value: &Value) -> BTreeMap<u8, u8> {
    let pair = |value: &Value| {
        let mut numbers = value.as_array()?.iter().filter_map(number);
        Some((numbers.next()?, numbers.next()?))
    };
    let pairs = value.as_array().into_iter().flatten();
    pairs.filter_map(pair).collect()
}
