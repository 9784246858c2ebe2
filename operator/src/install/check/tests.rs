use super::*;

#[test]
fn versions_with_and_without_suffix() {
    for (major, minor, expected) in [
        ("1", "32", true),
        ("1", "33+", true),
        ("1", "31", false),
        ("1", "9", false),
        ("2", "0", true),
        ("1", "x", false),
    ] {
        assert_eq!(is_new_enough(major, minor), expected, "{major}.{minor}");
    }
}

fn remove(crd: &CustomResourceDefinition, parent: &str, field: &str) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).unwrap();
    let at = format!("/spec/versions/0/schema/openAPIV3Schema/{parent}/properties");
    assert!(
        value
            .pointer_mut(&at)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(field)
            .is_some()
    );
    serde_json::from_value(value).unwrap()
}

#[test]
fn our_own_definitions_miss_nothing() {
    for crd in crds::crds() {
        assert!(missing_in_crd(&crd, &crd).is_empty());
    }
}

#[test]
fn an_older_definition_is_caught_by_the_field() {
    let crd = crds::crds().remove(0);
    let old = remove(&crd, "properties/spec", "mode");
    assert_eq!(missing_in_crd(&old, &crd), ["spec.mode"]);
    let old = remove(&crd, "properties/spec/properties/nics/items", "role");
    assert_eq!(missing_in_crd(&old, &crd), ["spec.nics[].role"]);
    assert!(
        missing_in_crd(&crd, &old).is_empty(),
        "a newer definition is fine"
    );
}

#[test]
fn the_published_document_is_searched_by_kind() {
    let crd = crds::crds().remove(0);
    let mut schema = schema(&crd);
    schema["x-kubernetes-group-version-kind"] = serde_json::json!([{"group": "gpurdma.dev", "kind": "GpuRdmaCluster", "version": "v1alpha1"}]);
    let document = serde_json::json!({"components": {"schemas": {"dev.gpurdma.v1alpha1.GpuRdmaCluster": schema}}});
    assert!(missing_in_openapi(&document, &crd).is_empty());
    assert_eq!(
        missing_in_openapi(&serde_json::json!({}), &crd),
        ["spec", "status"]
    );
}
