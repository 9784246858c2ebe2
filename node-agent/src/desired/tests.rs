use crds::cluster::{Driver, HostPackages, PackageRepository};

use super::*;

#[path = "../../../crds/tests/hostile/mod.rs"]
mod texts;

#[test]
fn what_breaks_out_of_any_text_is_refused_and_nothing_of_it_is_desired() {
    for spec in texts::specs() {
        let config = texts::config(&spec);
        let read = |config| serde_json::from_value(config).map(Desired::of_config);
        let right = read(config.clone()).unwrap().unwrap();
        assert_eq!(right.findings, []);
        for (place, config) in texts::hostile(&config) {
            // What is no choice of an enumeration cannot be read.
            let Ok(desired) = read(config) else { continue };
            let desired = desired.unwrap();
            let named = desired.findings.iter().any(|finding| {
                let field = &finding.component;
                finding.id == "INVALID_SPEC"
                    && (place.starts_with(field) || field.starts_with(&place))
            });
            assert!(named, "{place}: {:?}", desired.findings);
            let wanted = (&desired.modules, &desired.openib_conf, &desired.packages);
            let resources = &desired.config.device_plugin.resources;
            let wanted = format!("{wanted:?} {resources:?}");
            let taken = texts::TEXTS
                .iter()
                .find(|text| wanted.contains(&format!("{text:?}")));
            assert_eq!(taken, None, "{place}: {wanted}");
        }
    }
}

fn of_driver(driver: Driver) -> Desired {
    Desired::of_config(NodeConfig {
        driver,
        ..NodeConfig::default()
    })
    .unwrap()
}

#[test]
fn nothing_asked_is_nothing_desired() {
    let desired = Desired::of_config(NodeConfig::default()).unwrap();
    assert!(desired.modules.is_empty() && desired.openib_conf.is_empty());
    assert_eq!(desired.findings, []);
}

#[test]
fn a_wrong_field_is_named_and_left_out() {
    let desired = of_driver(Driver {
        modules: vec!["ib-umad".to_owned(), "-r".to_owned()],
        openib_conf: [
            ("UMAD_LOAD", "yes"),
            ("POST_START_HOOK", "/x"),
            ("NODE_DESC", "$(id)"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        ..Driver::default()
    });
    assert_eq!(desired.modules.len(), 1);
    assert_eq!(
        desired.openib_conf.keys().collect::<Vec<_>>(),
        ["UMAD_LOAD"]
    );
    let wrong: Vec<_> = desired
        .findings
        .iter()
        .map(|f| f.component.as_str())
        .collect();
    let fields = [
        "driver.modules[1]",
        "driver.openibConf.NODE_DESC",
        "driver.openibConf.POST_START_HOOK",
    ];
    assert_eq!(wrong, fields);
}

#[test]
fn the_keys_are_sorted_and_have_no_hooks() {
    assert!(OPENIB_KEYS.is_sorted());
    assert!(
        OPENIB_KEYS
            .iter()
            .all(|key| !key.contains("HOOK") && !key.contains("SCRIPT"))
    );
}

#[test]
fn packages_are_asked_for_whole_or_not_at_all() {
    let asked = |version: &str, packages: &[&str], url: &str| {
        let repository = PackageRepository {
            url: url.to_owned(),
            signing_key: "https://example.org/key".to_owned(),
            ..PackageRepository::default()
        };
        let driver = Driver {
            source: DriverSource::HostPackages,
            host_packages: Some(HostPackages {
                version: version.to_owned(),
                packages: packages.iter().map(|&name| name.to_owned()).collect(),
                repositories: vec![repository],
            }),
            ..Driver::default()
        };
        let config = NodeConfig {
            driver,
            ..NodeConfig::default()
        };
        Desired::of_config(config).unwrap()
    };
    let good = asked("3.2.2", &[], "https://example.org/doca");
    let packages = good.packages.unwrap();
    assert_eq!(crate::packages::shown(&packages.wishes), "doca-ofed=3.2.2");
    for (version, package, url, field) in [
        ("--force", "doca-ofed", "https://example.org/x", "version"),
        ("$(reboot)", "doca-ofed", "https://example.org/x", "version"),
        ("3.2", "-o=x", "https://example.org/x", "packages[0]"),
        ("3.2", "a;b", "https://example.org/x", "packages[0]"),
        ("3.2", "/etc/x.deb", "https://example.org/x", "packages[0]"),
        (
            "3.2",
            "doca-ofed",
            "http://example.org/x",
            "repositories[0]",
        ),
        (
            "3.2",
            "doca-ofed",
            "https://user@example.org/x",
            "repositories[0]",
        ),
        (
            "3.2",
            "doca-ofed",
            "https://example.org/x\nTrusted: yes",
            "repositories[0]",
        ),
    ] {
        let wrong = asked(version, &[package], url);
        assert_eq!(wrong.packages, None, "{version} {package} {url}");
        let fields: Vec<_> = wrong
            .findings
            .iter()
            .map(|f| f.component.as_str())
            .collect();
        assert_eq!(fields, [format!("driver.hostPackages.{field}")]);
    }
}
