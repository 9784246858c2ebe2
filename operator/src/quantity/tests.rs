use super::*;

#[test]
fn quantities_are_numbers_however_they_are_written() {
    for (one, other) in [
        ("2", "2"),
        ("2", "+2.0"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1Gi", "1024Mi"),
        ("1.5Gi", "1536Mi"),
        ("1k", "1000"),
        ("1e3", "1k"),
        ("1E3", "1k"),
        ("1000000u", "1"),
        ("0.1n", "1n"),
        ("8Ei", "9223372036854775808"),
        ("-1", "-1000m"),
        ("0", "0Mi"),
    ] {
        assert_eq!(billionths(one), billionths(other), "{one} {other}");
        assert!(billionths(one).is_some(), "{one}");
    }
    assert_ne!(billionths("1G"), billionths("1Gi"));
    assert_ne!(billionths("1"), billionths("1m"));
}

#[test]
fn what_is_no_quantity_is_none() {
    for text in [
        "", "-", ".", "Gi", "1Q", "1 Gi", "one", "1.2.3", "1e", "1e99",
    ] {
        assert_eq!(billionths(text), None, "{text:?}");
    }
}

#[test]
fn nothing_and_less_are_not_positive_and_the_unreadable_is() {
    for (text, expected) in [
        ("1", true),
        ("1m", true),
        ("0", false),
        ("0Gi", false),
        ("-1", false),
        ("?", true),
    ] {
        assert_eq!(is_positive(text), expected, "{text:?}");
    }
}
