use super::*;

#[test]
fn only_our_finalizer_goes() {
    let both = ["other".to_owned(), FINALIZER.to_owned()];
    let patch = finalizer_patch(&both, Some("3")).unwrap();
    assert_eq!(
        patch,
        json!({"metadata": {"finalizers": ["other"], "resourceVersion": "3"}})
    );
    assert_eq!(finalizer_patch(&["other".to_owned()], Some("3")), None);
}

#[test]
fn only_labels_that_are_there_are_removed() {
    let mut node = NodeFacts::default();
    assert!(labels_to_remove(&node).is_empty());
    node.labels
        .insert(PLUGIN_LABEL.to_owned(), "true".to_owned());
    assert_eq!(
        labels_to_remove(&node),
        BTreeMap::from([(PLUGIN_LABEL, None)])
    );
}
