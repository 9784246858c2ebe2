use std::collections::BTreeSet;

use super::*;

/// The pattern of `metav1.Condition.reason`.
fn is_reason(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|char| char.is_ascii_alphanumeric())
        && name.len() <= 64
}

#[test]
fn every_name_is_a_valid_reason_and_unique_in_its_enum() {
    let enums: [Vec<&str>; 5] = [
        ClusterCondition::ALL
            .iter()
            .map(|name| name.as_str())
            .collect(),
        ClusterReason::ALL
            .iter()
            .map(|name| name.as_str())
            .collect(),
        NodeCondition::ALL
            .iter()
            .map(|name| name.as_str())
            .collect(),
        NodeReason::ALL.iter().map(|name| name.as_str()).collect(),
        EventReason::ALL.iter().map(|name| name.as_str()).collect(),
    ];
    for names in enums {
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(names.iter().all(|name| is_reason(name)), "{names:?}");
    }
}

#[test]
fn display_is_the_name_in_the_api() {
    assert_eq!(
        NodeReason::ForeignGpuAdvertiser.to_string(),
        "ForeignGpuAdvertiser"
    );
    assert_eq!(
        String::from(ClusterReason::NoMatchingNodes),
        "NoMatchingNodes"
    );
}
