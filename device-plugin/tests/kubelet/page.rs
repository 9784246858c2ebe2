//! `docs/kubelet.md` has every point of the protocol, and names tests that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Points of the protocol.
const POINTS: u32 = 28;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Rows of the table, by point: what stands in back quotes.
fn rows() -> BTreeMap<u32, Vec<String>> {
    let page = std::fs::read_to_string(repository().join("docs/kubelet.md")).unwrap();
    let numbered = page.lines().filter_map(|line| {
        let (point, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let (_, tests) = rest.trim_end_matches(" |").rsplit_once(" | ")?;
        let quoted = tests.split('`').skip(1).step_by(2).map(str::to_owned);
        Some((point.parse().ok()?, quoted.collect()))
    });
    numbered.collect()
}

/// Every Rust file below `directory`: its path and its text.
fn sources(directory: &Path, out: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            out.push((path, text));
        }
    }
}

fn below(directory: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    sources(&repository().join(directory), &mut files);
    files
}

/// Whether `a::b::name` is a function in a file `…/a/b.rs` or `…/a/b/…`.
fn is_there(files: &[(PathBuf, String)], test: &str) -> bool {
    let mut modules: Vec<&str> = test.split("::").collect();
    let name = modules.pop().unwrap_or_default();
    files.iter().any(|(path, text)| {
        let path = path.with_extension("");
        let parts: Vec<_> = path.iter().collect();
        let inside = |module: &&str| parts.iter().any(|part| part == module);
        modules.iter().filter(|m| **m != "tests").all(inside)
            && text.contains(&format!("fn {name}("))
    })
}

#[test]
fn every_point_has_a_row_whose_tests_are_there() {
    let rows = rows();
    let points: Vec<u32> = rows.keys().copied().collect();
    assert_eq!(points, (1..=POINTS).collect::<Vec<_>>());
    let mut crates = BTreeMap::new();
    for test in rows.values().flatten() {
        let (krate, path) = test.split_once(": ").unwrap_or_else(|| panic!("{test}"));
        let files = crates.entry(krate).or_insert_with(|| below(krate));
        assert!(is_there(files, path), "there is no {test}");
    }
}

#[test]
fn every_test_of_a_point_is_in_its_row() {
    let mut written: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for (_, text) in below("device-plugin/tests/kubelet") {
        for rest in text.split("\nasync fn kubelet_").skip(1) {
            let name = rest.split('(').next().unwrap();
            let point = name.split('_').next().unwrap().parse().unwrap();
            let name = format!("kubelet_{name}");
            written.entry(point).or_default().insert(name);
        }
    }
    for (point, tests) in rows() {
        let named = tests.iter().filter_map(|test| test.rsplit("::").next());
        let named = named.filter(|name| name.starts_with("kubelet_"));
        let named: BTreeSet<String> = named.map(str::to_owned).collect();
        assert_eq!(written.get(&point), Some(&named), "point {point}");
    }
}
