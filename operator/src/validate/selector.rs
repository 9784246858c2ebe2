//! Checks `spec.nodeSelector`. Pure. It becomes a term of the agent's node affinity, beside those of every other
//! cluster: what the API server would refuse there must end here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::Selector;

use super::Invalid;
use crate::labels;

pub(super) fn selector(written: &LabelSelector) -> Result<Selector, Invalid> {
    for (key, value) in written.match_labels.iter().flatten() {
        check_key("matchLabels", key)?;
        check_value("matchLabels", key, value)?;
    }
    for requirement in written.match_expressions.iter().flatten() {
        check_requirement(requirement)?;
    }
    Selector::try_from(written.clone()).map_err(|source| {
        let selector = serde_json::to_string(written).unwrap_or_default();
        Invalid::Selector { selector, source }
    })
}

fn check_requirement(requirement: &LabelSelectorRequirement) -> Result<(), Invalid> {
    let LabelSelectorRequirement {
        key,
        operator,
        values,
    } = requirement;
    check_key("matchExpressions", key)?;
    check_count(key, operator, values.as_ref().map_or(0, Vec::len))?;
    values
        .iter()
        .flatten()
        .try_for_each(|value| check_value("matchExpressions", key, value))
}

fn check_count(key: &str, operator: &str, count: usize) -> Result<(), Invalid> {
    let remedy = match operator {
        "In" | "NotIn" if count == 0 => "give at least one",
        "Exists" | "DoesNotExist" if count > 0 => "give none",
        _ => return Ok(()),
    };
    Err(Invalid::Values {
        key: key.to_owned(),
        operator: operator.to_owned(),
        count,
        remedy,
    })
}

fn check_key(field: &'static str, key: &str) -> Result<(), Invalid> {
    if labels::is_key(key) {
        return Ok(());
    }
    Err(Invalid::LabelKey {
        field,
        key: key.to_owned(),
    })
}

fn check_value(field: &'static str, key: &str, value: &str) -> Result<(), Invalid> {
    if labels::is_value(value) {
        return Ok(());
    }
    Err(Invalid::LabelValue {
        field,
        key: key.to_owned(),
        value: value.to_owned(),
    })
}
