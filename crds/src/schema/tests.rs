use schemars::json_schema;

use super::*;

#[test]
fn an_optional_field_loses_its_null_and_keeps_its_own_description() {
    let mut schema = json_schema!({
        "description": "the field",
        "anyOf": [{"type": "object", "description": "the type", "default": {}}, {"type": "null"}],
    });
    spec(&mut schema);
    assert_eq!(
        schema.to_value(),
        json!({"description": "the field", "type": "object", "default": {}})
    );
}

#[test]
fn null_leaves_types_and_enums() {
    let mut schema =
        json_schema!({"properties": {"a": {"type": ["string", "null"], "enum": ["x", null]}}});
    spec(&mut schema);
    assert_eq!(
        schema.to_value(),
        json!({"properties": {"a": {"type": "string", "enum": ["x"]}}})
    );
}

#[test]
fn a_choice_of_two_types_stays() {
    let choice = json_schema!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
    let mut schema = choice.clone();
    spec(&mut schema);
    assert_eq!(schema, choice);
}

#[test]
fn unsigned_formats_become_signed_ones_that_hold_them_and_no_more() {
    for (before, after) in [
        ("uint8", json!({"format": "int32", "maximum": 255})),
        ("uint16", json!({"format": "int32", "maximum": 65_535})),
        (
            "uint32",
            json!({"format": "int64", "maximum": 4_294_967_295_u32}),
        ),
        ("uint64", json!({"format": "int64"})),
        ("int32", json!({"format": "int32"})),
    ] {
        let mut schema = json_schema!({"format": before});
        spec(&mut schema);
        assert_eq!(schema.to_value(), after, "{before}");
    }
}

#[test]
fn a_maximum_of_the_field_itself_stays() {
    let mut schema = json_schema!({"format": "uint32", "maximum": 63});
    spec(&mut schema);
    assert_eq!(schema.to_value(), json!({"format": "int64", "maximum": 63}));
}

#[test]
fn only_a_status_loses_its_defaults() {
    let original = json_schema!({"properties": {"n": {"type": "integer", "default": 0}}});
    let (mut as_spec, mut as_status) = (original.clone(), original.clone());
    spec(&mut as_spec);
    status(&mut as_status);
    assert_eq!(as_spec, original);
    assert_eq!(
        as_status.to_value(),
        json!({"properties": {"n": {"type": "integer"}}})
    );
}
