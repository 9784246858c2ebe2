//! `installHash` and `planHash`: sha256 over canonical JSON (sorted keys), in lower-case hex.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::node::{ActionStatus, Cost, NodeConfig};

/// The hash of what is installed: driver, gpuDirect, tuning and fabric.linkLayer. Nothing else drains a node.
///
/// # Errors
/// Only if a value has no JSON form.
pub fn install_hash(config: &NodeConfig) -> Result<String, serde_json::Error> {
    hash(&install_inputs(config)?)
}

/// Destructured without `..`: a new field does not compile until it is decided whether it is installed.
fn install_inputs(config: &NodeConfig) -> Result<Value, serde_json::Error> {
    let NodeConfig {
        driver,
        gpu_direct,
        tuning,
        fabric,
        nics: _,
        device_plugin: _,
        rails: _,
        addresses: _,
    } = config;
    Ok(serde_json::json!({
        "driver": serde_json::to_value(driver)?,
        "gpuDirect": serde_json::to_value(gpu_direct)?,
        "tuning": serde_json::to_value(tuning)?,
        "linkLayer": serde_json::to_value(fabric.link_layer)?,
    }))
}

/// The hash of a plan: its costly actions `(kind, target, desired)`, sorted, and the install hash. Current values,
/// attempts and boot id are left out, so that it survives partial execution and reboots.
///
/// # Errors
/// Only if a value has no JSON form.
pub fn plan_hash(
    actions: &[ActionStatus],
    install_hash: &str,
) -> Result<String, serde_json::Error> {
    let mut costly: Vec<_> = actions
        .iter()
        .filter(|action| action.cost != Cost::None)
        .map(|action| {
            [
                action.kind.as_str(),
                action.target.as_str(),
                action.desired.as_str(),
            ]
        })
        .collect();
    costly.sort_unstable();
    hash(&serde_json::json!({ "actions": costly, "installHash": install_hash }))
}

fn hash(value: &Value) -> Result<String, serde_json::Error> {
    let canonical = serde_json::to_vec(&sorted(value))?;
    let nibbles = Sha256::digest(canonical)
        .into_iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf]);
    Ok(nibbles
        .filter_map(|nibble| char::from_digit(nibble.into(), 16))
        .collect())
}

/// The same value with the keys of every object in order, whatever map type `serde_json` was built with.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            entries
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
