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
    addresses, fabric, nic_match, node_address, rail_addresses, traffic_class, traffic_classes,
    tuning,
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

/// The labels of a label selector, whose schema is not ours.
pub(crate) fn selector_labels(schema: &mut Value) {
    attach_to_value(schema, SELECTOR_LABELS);
}

/// One requirement of a label selector, whose schema is not ours.
pub(crate) fn selector_expression(schema: &mut Value) {
    attach_to_value(schema, SELECTOR);
}

fn attach_to_value(schema: &mut Value, rules: &[Rule]) {
    if let Value::Object(object) = schema {
        let rules = rules.iter().map(rendered).collect();
        object.insert("x-kubernetes-validations".to_owned(), Value::Array(rules));
    }
}

/// Keys and values follow Kubernetes' own rules for labels (`IsQualifiedName`, `IsValidLabelValue`).
const SELECTOR_LABELS: &[Rule] = &[
    (
        "self.all(key, key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",
        Message::Text(
            "nodeSelector.matchLabels has a key that no label can have: write a name of at most 63 characters, such as pool, or a domain before it, such as example.org/pool",
        ),
    ),
    (
        "self.all(key, self[key].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'))",
        Message::Text(
            "nodeSelector.matchLabels has a value that no label can have: write letters, digits, - _ and . only, such as gpu",
        ),
    ),
];

const SELECTOR: &[Rule] = &[
    (
        "self.key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",
        Message::Text(
            "nodeSelector.matchExpressions[].key is none that a label can have: write a name of at most 63 characters, such as pool, or a domain before it, such as example.org/pool",
        ),
    ),
    (
        "!has(self.values) || self.values.all(value, value.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'))",
        Message::Text(
            "nodeSelector.matchExpressions[].values has one that no label can have: write letters, digits, - _ and . only, such as gpu",
        ),
    ),
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
