//! Reading and writing the node file's bytes.

use serde_json::Value;

use super::{NodeFile, SCHEMA};

/// Optional fields that came after 1.0, by name, and the minor version that brought them.
const ADDED: [(&str, u32); 2] = [("uverbs", 1), ("nicLists", 2)];

/// A text that is no node file of this schema.
#[derive(Debug, thiserror::Error)]
pub enum NodeFileError {
    /// No JSON.
    #[error("node file: no valid JSON")]
    Json(#[source] serde_json::Error),
    /// No version, or none that can be read.
    #[error(
        "node file: field `schema` must be MAJOR.MINOR in quotes, as in \"{SCHEMA}\"; found {found}"
    )]
    Schema {
        /// What is there instead.
        found: String,
    },
    /// Written by an agent of another generation.
    #[error(
        "node file: schema {found} is of another major version than {SCHEMA}; run the agent and the plugin of one release"
    )]
    Major {
        /// The file's version.
        found: String,
    },
    /// A field that this version does not have.
    #[error(
        "node file: unknown field `{path}` in schema {schema}; remove it, or run the plugin of the agent's release"
    )]
    UnknownField {
        /// Where.
        path: String,
        /// The file's version.
        schema: String,
    },
    /// A field that must be there.
    #[error("node file: field `{path}` is missing; run the agent and the plugin of one release")]
    MissingField {
        /// Where.
        path: String,
    },
    /// A value that does not fit.
    #[error("node file: a field is missing or has a value of the wrong kind")]
    Value(#[source] serde_json::Error),
}

impl NodeFile {
    /// Reads a node file.
    pub fn parse(text: &str) -> Result<Self, NodeFileError> {
        let given: Value = serde_json::from_str(text).map_err(NodeFileError::Json)?;
        let (schema, minor) = version(&given)?;
        // From the text, not the value: so the error tells line and column.
        let file: Self = serde_json::from_str(text).map_err(NodeFileError::Value)?;
        let known = serde_json::to_value(&file).map_err(NodeFileError::Value)?;
        let later = |field: &str| {
            ADDED
                .iter()
                .any(|(name, since)| *name == field && *since > minor)
        };
        if let Some(path) = first_extra(&known, &given, "", &later) {
            return Err(NodeFileError::MissingField { path });
        }
        let is_newer = minor > own_minor();
        match first_extra(&given, &known, "", &|_| false).filter(|_| !is_newer) {
            Some(path) => Err(NodeFileError::UnknownField { path, schema }),
            None => Ok(file),
        }
    }

    /// The bytes to write: the same for the same content, whatever the order of its parts.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut sorted = self.clone();
        sorted.resources.sort_by(|a, b| a.name.cmp(&b.name));
        for resource in &mut sorted.resources {
            resource.envs.sort_by(|a, b| a.name.cmp(&b.name));
            resource.nic_lists.sort_by(|a, b| a.name.cmp(&b.name));
            resource.devices.sort_by(|a, b| a.id.cmp(&b.id));
            for device in &mut resource.devices {
                device.links.sort_by(|a, b| a.to.cmp(&b.to));
            }
        }
        // Nothing in the type can fail to be JSON: its map keys are field names, and it has no floats.
        let mut text = serde_json::to_string_pretty(&sorted).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn own_minor() -> u32 {
    parts(SCHEMA).map_or(0, |(_, minor)| minor)
}

fn version(given: &Value) -> Result<(String, u32), NodeFileError> {
    let found = given.get("schema").ok_or_else(|| NodeFileError::Schema {
        found: "nothing".to_owned(),
    })?;
    let text = found.as_str().unwrap_or_default();
    let (major, minor) = parts(text).ok_or_else(|| NodeFileError::Schema {
        found: found.to_string(),
    })?;
    if Some(major) != parts(SCHEMA).map(|(major, _)| major) {
        return Err(NodeFileError::Major {
            found: text.to_owned(),
        });
    }
    Ok((text.to_owned(), minor))
}

fn parts(schema: &str) -> Option<(u32, u32)> {
    let (major, minor) = schema.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Path of the first field of `one` that `other` does not have and that is not `excused`.
fn first_extra(
    one: &Value,
    other: &Value,
    at: &str,
    excused: &dyn Fn(&str) -> bool,
) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => one.iter().find_map(|(name, value)| {
            let path = if at.is_empty() {
                name.clone()
            } else {
                format!("{at}.{name}")
            };
            match other.get(name) {
                Some(twin) => first_extra(value, twin, &path, excused),
                None => Some(path).filter(|_| !excused(name)),
            }
        }),
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (a, b))| first_extra(a, b, &format!("{at}[{index}]"), excused))
        }
        _ => None,
    }
}
