//! The manifests in `docs/examples`, as a user applies them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::paths;

/// All manifests, sorted by name.
pub fn files() -> Result<Vec<PathBuf>> {
    let folder = paths::repository().join("docs/examples");
    let entries = std::fs::read_dir(&folder)
        .with_context(|| format!("list {}", folder.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    Ok(files)
}

/// The objects of a manifest, by its file name without the end.
pub fn objects(name: &str) -> Result<Vec<Value>> {
    let path = paths::repository().join(format!("docs/examples/{name}.yaml"));
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    serde_yaml::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).context("understand a document"))
        .collect::<Result<_>>()
        .with_context(|| format!("understand {}", path.display()))
}

/// The object of that kind.
pub fn object(name: &str, kind: &str) -> Result<Value> {
    let objects = objects(name)?;
    let found = objects.into_iter().find(|object| object["kind"] == kind);
    found.with_context(|| format!("docs/examples/{name}.yaml has no {kind}"))
}

/// Visits the specification of every pod and pod template in an object.
pub fn for_each_pod(object: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    if object["containers"].is_array() {
        visit(object);
        return;
    }
    let parts: Vec<&mut Value> = match object {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    for part in parts {
        for_each_pod(part, visit);
    }
}
