//! `docs/reports.md` names tests that are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Text of every Rust file below `directory`.
fn sources(directory: &Path, out: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            out.push((path.display().to_string(), text));
        }
    }
}

/// `crate: a::b::name` → the crate, the modules and the function.
fn named(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let (krate, path) = text.split_once(": ")?;
    let (modules, name) = path.rsplit_once("::")?;
    let modules = modules.split("::").filter(|module| *module != "tests");
    Some((krate, modules.collect(), name))
}

fn is_row(line: &&str) -> bool {
    line.starts_with("| ") && !line.starts_with("| id ")
}

#[test]
fn every_test_that_the_page_names_is_there() {
    let page = std::fs::read_to_string(repository().join("docs/reports.md")).unwrap();
    let rows = page.lines().filter(is_row);
    let mut seen = 0;
    let mut crates: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for row in rows {
        for quoted in row.split('`').skip(1).step_by(2) {
            let Some((krate, modules, name)) = named(quoted) else {
                continue;
            };
            let files = crates.entry(krate).or_insert_with(|| {
                let mut files = Vec::new();
                sources(&repository().join(krate), &mut files);
                files
            });
            let is_it = |(path, text): &(String, String)| {
                let parts: Vec<&str> = path
                    .split('/')
                    .map(|part| part.trim_end_matches(".rs"))
                    .collect();
                let there = modules.iter().all(|module| parts.contains(module));
                there && text.contains(&format!("fn {name}("))
            };
            assert!(files.iter().any(is_it), "there is no {quoted}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} tests are named");
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let page = std::fs::read_to_string(repository().join("docs/reports.md")).unwrap();
    for row in page.lines().filter(is_row) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 4, "{row}");
        let said = ["none: ", "as ", "`"]
            .iter()
            .any(|start| cells[3].starts_with(start));
        assert!(said, "{row}");
    }
}
