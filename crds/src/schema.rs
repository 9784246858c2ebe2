//! Finishing touches on the generated schema, so that the API server takes it as a structural schema without
//! warnings. Pure; called by schemars while the schema is generated.

use schemars::Schema;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

/// Whether a value is its type's default: such a value is left out, so that a field added later does not change
/// the hash of a configuration that does not use it.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Finishes a whole specification.
pub(crate) fn spec(schema: &mut Schema) {
    Finish { defaults: true }.transform(schema);
}

/// Finishes a whole status. It has no defaults: the API server must not write zeroes that nobody counted.
pub(crate) fn status(schema: &mut Schema) {
    Finish { defaults: false }.transform(schema);
}

/// Takes the default from a field whose effect is not built yet.
pub(crate) fn no_default(schema: &mut Schema) {
    schema.remove("default");
}

struct Finish {
    defaults: bool,
}

impl Transform for Finish {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(object) = schema.as_object_mut() {
            drop_null(object);
            signed_format(object);
            if !self.defaults {
                object.remove("default");
            }
        }
    }
}

/// An optional field may be omitted; an explicit null is pruned by the API server where the field is not nullable,
/// so that rules need not tell null from absent.
fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    hoist_only_variant(object);
}

/// `anyOf: [X, null]` is X, with the field's own description before X's.
fn hoist_only_variant(object: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = object.get("anyOf") else {
        return;
    };
    let kept: Vec<_> = variants
        .iter()
        .filter(|variant| variant["type"] != "null")
        .collect();
    if let [Value::Object(only)] = kept.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// OpenAPI knows signed integer formats only; the API server warns about others. The next larger one holds more than
/// the type, so the type's own maximum goes with it: a number that cannot be read back must not be stored.
fn signed_format(object: &mut Map<String, Value>) {
    let (format, maximum) = match object.get("format").and_then(Value::as_str) {
        Some("uint8") => ("int32", Some(u64::from(u8::MAX))),
        Some("uint16") => ("int32", Some(u64::from(u16::MAX))),
        Some("uint32") => ("int64", Some(u64::from(u32::MAX))),
        Some("uint64") => ("int64", None),
        _ => return,
    };
    object.insert("format".to_owned(), format.into());
    if let Some(maximum) = maximum {
        object.entry("maximum").or_insert(maximum.into());
    }
}

/// Conditions: one per type, each with its own owner under server-side apply.
pub(crate) fn conditions(schema: &mut Schema) {
    schema.insert("maxItems".to_owned(), 16.into());
    schema.insert("x-kubernetes-list-type".to_owned(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".to_owned(), json!(["type"]));
    for (name, max) in [
        ("type", 64),
        ("status", 8),
        ("reason", 64),
        ("message", 1024),
    ] {
        bound(
            schema,
            &format!("/items/properties/{name}"),
            "maxLength",
            max,
        );
    }
}

/// Limits of a label selector; the lengths are those of label keys and values.
pub(crate) fn label_selector(schema: &mut Schema) {
    let limits = [
        ("/properties/matchLabels", "maxProperties", 32),
        (
            "/properties/matchLabels/additionalProperties",
            "maxLength",
            63,
        ),
        ("/properties/matchExpressions", "maxItems", 32),
        (
            "/properties/matchExpressions/items/properties/key",
            "maxLength",
            317,
        ),
        (
            "/properties/matchExpressions/items/properties/operator",
            "maxLength",
            16,
        ),
        (
            "/properties/matchExpressions/items/properties/values",
            "maxItems",
            64,
        ),
        (
            "/properties/matchExpressions/items/properties/values/items",
            "maxLength",
            63,
        ),
    ];
    for (pointer, key, max) in limits {
        bound(schema, pointer, key, max);
    }
    if let Some(labels) = schema.pointer_mut("/properties/matchLabels") {
        crate::rules::selector_labels(labels);
    }
    if let Some(requirement) = schema.pointer_mut("/properties/matchExpressions/items") {
        crate::rules::selector_expression(requirement);
    }
}

fn bound(schema: &mut Schema, pointer: &str, key: &str, max: u32) {
    if let Some(Value::Object(object)) = schema.pointer_mut(pointer) {
        object.insert(key.to_owned(), max.into());
    }
}

/// Limits of a map from string to string.
pub(crate) fn string_map(schema: &mut Schema, entries: u32, length: u32) {
    schema.insert("maxProperties".to_owned(), entries.into());
    bound(schema, "/additionalProperties", "maxLength", length);
}

#[cfg(test)]
mod tests;
