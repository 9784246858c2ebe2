use super::*;

fn package(version: &str) -> Package {
    Package {
        version: version.to_owned(),
        held: false,
        broken: None,
    }
}

#[test]
fn nothing_that_could_be_an_option_a_path_or_shell_is_a_name() {
    for good in ["doca-ofed", "libibverbs1", "g++", "python3.11", "kernel_x"] {
        assert_eq!(PackageName::new(good).unwrap().as_str(), good);
    }
    for bad in [
        "", "-y", "--force", "a b", "a;b", "$(x)", "a/b", "../x", "a=1", "a*", "a\n", "ä",
    ] {
        assert!(PackageName::new(bad).is_err(), "{bad}");
        assert!(PackageVersion::new(bad).is_err(), "{bad}");
    }
    assert!(PackageName::new(&"a".repeat(129)).is_err());
    assert!(
        serde_json::from_str::<PackageName>("\"-o\"").is_err(),
        "a journal is checked too"
    );
}

#[test]
fn a_version_matches_with_and_without_epoch_and_revision() {
    let matches = |wanted: &str, found: &str| PackageVersion::new(wanted).unwrap().matches(found);
    assert!(matches("3.2.2-1", "3.2.2-1"));
    assert!(matches("3.2.2", "3.2.2-1.el9"));
    assert!(matches("3.2.2", "2:3.2.2-1"));
    assert!(matches("2:3.2.2-1", "2:3.2.2-1"));
    assert!(!matches("3.2.2", "3.2.20-1"));
    assert!(!matches("3.2.2-1", "3.2.2-2"));
    assert!(!matches("3.2", "3.2.2"));
}

#[test]
fn what_is_not_as_wished_is_named() {
    let version = Wish::Version(PackageVersion::new("2").unwrap());
    let name = |text: &str| PackageName::new(text).unwrap();
    let wishes: Wishes = [
        (name("a"), version.clone()),
        (name("b"), version.clone()),
        (name("c"), version.clone()),
        (name("d"), version),
        (name("e"), Wish::Absent),
        (name("f"), Wish::Absent),
    ]
    .into();
    let half = Package {
        broken: Some("half-configured".to_owned()),
        ..package("2")
    };
    let installed: Installed = [
        ("a".to_owned(), package("2")),
        ("c".to_owned(), package("1")),
        ("d".to_owned(), half),
        ("e".to_owned(), package("9")),
    ]
    .into();
    let text = "b is not installed, c is 1, d 2 is half-configured, e 9 is installed";
    assert_eq!(unmet(&wishes, &installed).as_deref(), Some(text));
    let left: Vec<_> = open(&wishes, &installed)
        .into_keys()
        .map(String::from)
        .collect();
    assert_eq!(left, ["b", "c", "d", "e"]);
}
