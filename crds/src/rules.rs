//! Validation rules in CEL, attached to the types by `schemars(transform = …)`. The API server evaluates them, so
//! that a wrong object is refused when it is written. Pure; every message names the field, what is wrong and what
//! to write instead. Paths in messages start below `spec`.
//!
//! Every list, map and string that a rule walks has a maximum: the API server estimates the cost from it.

mod device_plugin;
mod driver;
mod fabric;
mod link;

use schemars::Schema;
use serde_json::{Value, json};

pub(crate) use device_plugin::{resource, resources, upgrade};
pub use driver::OPENIB_CONF_KEYS;
pub(crate) use driver::{container, driver, env, host_packages, modules, openib_conf, repository};
pub(crate) use fabric::{
    addresses, fabric, nic_match, rail_addresses, traffic_class, traffic_classes, tuning,
};
pub(crate) use link::{ipoib, partitions, roce};

/// Longest name of a cluster: it becomes part of a DaemonSet's name and of a label's value.
pub(crate) const NAME_RULE: &str = "self.metadata.name.size() <= 40";
/// What [`NAME_RULE`] says.
pub(crate) const NAME_MESSAGE: &str = "metadata.name has more than 40 characters: write a shorter name, it becomes part of DaemonSet names and node labels";

/// A rule and what it says when it fails.
type Rule = (&'static str, Message);

/// What a failed rule says.
enum Message {
    /// A fixed text.
    Text(&'static str),
    /// A CEL expression that yields the text, for messages with values in them.
    Cel(&'static str),
}

/// Adds rules to a schema.
fn attach(schema: &mut Schema, rules: &[Rule]) {
    let rules = rules.iter().map(rendered).collect();
    schema.insert("x-kubernetes-validations".to_owned(), Value::Array(rules));
}

fn rendered((rule, message): &Rule) -> Value {
    match message {
        Message::Text(text) => json!({ "rule": rule, "message": text }),
        Message::Cel(expression) => json!({ "rule": rule, "messageExpression": expression }),
    }
}

/// One requirement of a label selector, whose schema is not ours.
pub(crate) fn selector_expression(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    let rules = SELECTOR.iter().map(rendered).collect();
    object.insert("x-kubernetes-validations".to_owned(), Value::Array(rules));
}

const SELECTOR: &[Rule] = &[
    (
        "self.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist']",
        Message::Text(
            "nodeSelector.matchExpressions[].operator is unknown: write In, NotIn, Exists or DoesNotExist",
        ),
    ),
    (
        "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
        Message::Text(
            "nodeSelector.matchExpressions[].values is empty: operators In and NotIn need at least one value",
        ),
    ),
    (
        "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",
        Message::Text(
            "nodeSelector.matchExpressions[].values is set: remove it, operators Exists and DoesNotExist take none",
        ),
    ),
];

#[cfg(test)]
mod tests;
