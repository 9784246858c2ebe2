//! Containerfile and local images are made from one package list.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that fails should say where"
)]

use e2e::{paths, product};

#[test]
fn the_containerfile_installs_the_listed_packages() {
    let text = std::fs::read_to_string(paths::repository().join("Containerfile")).unwrap();
    for image in product::list().unwrap().images {
        let mark = format!("# packages: {}\n", image.binary);
        let listed = text
            .split_once(&mark)
            .and_then(|(_, rest)| rest.lines().next())
            .unwrap_or_default();
        let packages = listed
            .strip_prefix("ARG PACKAGES=")
            .unwrap_or_default()
            .trim_matches('"');
        assert_eq!(
            packages.split_whitespace().collect::<Vec<_>>(),
            image.packages,
            "{}",
            image.binary
        );
    }
}
