use super::*;

#[test]
fn keys_are_qualified_names() {
    let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
    let prefix = |length: usize| format!("{}/a", "p".repeat(length));
    for (key, expected) in [
        ("pool", true),
        ("Pool_1.x-y", true),
        ("node-role.kubernetes.io/worker", true),
        (longest.as_str(), true),
        (too_long.as_str(), false),
        (prefix(253).as_str(), true),
        (prefix(254).as_str(), false),
        ("", false),
        ("-pool", false),
        ("pool.", false),
        ("po ol", false),
        ("pööl", false),
        ("/pool", false),
        ("example.org/", false),
        ("Example.org/pool", false),
        ("example..org/pool", false),
        ("-example.org/pool", false),
        ("example.org/a/b", false),
    ] {
        assert_eq!(is_key(key), expected, "{key:?}");
    }
}

#[test]
fn values_are_names_or_nothing() {
    let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
    for (value, expected) in [
        ("", true),
        ("gpu", true),
        ("v1.2_x", true),
        (longest.as_str(), true),
        (too_long.as_str(), false),
        ("gpu nodes", false),
        ("a/b", false),
        ("gpu-", false),
        ("*", false),
    ] {
        assert_eq!(is_value(value), expected, "{value:?}");
    }
}
