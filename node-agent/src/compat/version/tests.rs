use super::*;

#[test]
fn numbers_compare_and_text_does_not() {
    assert!(older("2.9", "2.10"));
    assert!(older("470.57.02", "515"));
    assert!(
        !older("2.9.3", "2.9") && !older("2.9", "2.9.3"),
        "the same as far as both say"
    );
    assert!(!older("unknown", "1") && !older("1", "unknown"));
    assert!(older("5.4.0-100-generic", "5.12"));
    assert_eq!(leading("3.2.2-025010"), "3.2.2");
}

#[test]
fn a_release_covers_its_minor_ones_and_no_other() {
    assert!(covers("9", "9.4") && covers("22.04", "22.04"));
    assert!(!covers("9", "90") && !covers("22.04", "22.10"));
}

/// G84: the text changed form, and what compared it broke.
#[test]
fn the_ofed_version_is_read_in_every_form_in_which_it_is_written() {
    let of = |text: &str| Ofed::parse(text).map(|ofed| ofed.number());
    assert_eq!(
        of("MLNX_OFED_LINUX-24.10-3.2.5.0:").as_deref(),
        Some("24.10")
    );
    assert_eq!(of("OFED-internal-25.10-1.2.8:").as_deref(), Some("25.10"));
    assert_eq!(of("doca3.2.2-25.10-2.4.1.0-4").as_deref(), Some("25.10"));
    assert_eq!(of("MLNX_OFED_LINUX-5.08-1.0.0").as_deref(), Some("5.08"));
    assert_eq!(of("something else"), None);
    let same = |a: &str, b: &str| Ofed::parse(a).unwrap().same(&Ofed::parse(b).unwrap());
    assert!(same("doca3.2.2-25.10-2.4.1.0-4", "25.10-2.4.1"));
    assert!(!same("doca3.2.2-25.10-2.4.1.0-4", "25.10-2.4.2"));
    assert!(!same("25.10-2.4.1", "25.07-2.4.1"));
}
