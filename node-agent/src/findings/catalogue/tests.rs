use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[test]
fn every_finding_has_a_page_and_every_page_a_finding() {
    let written: BTreeSet<String> = pages().unwrap().into_keys().collect();
    let made: BTreeSet<String> = FindingId::ALL
        .iter()
        .map(|id| id.row().0.to_owned())
        .collect();
    assert_eq!(made.len(), FindingId::ALL.len());
    assert_eq!(written, made);
}

#[test]
fn no_page_is_written_twice() {
    let all: usize = TOPICS
        .iter()
        .map(|topic| {
            let pages: BTreeMap<String, Page> = serde_yaml::from_str(topic).unwrap();
            pages.len()
        })
        .sum();
    assert_eq!(all, pages().unwrap().len());
}

#[test]
fn a_page_says_everything() {
    for (name, page) in pages().unwrap() {
        let texts = [
            &page.title,
            &page.component,
            &page.seen,
            &page.right,
            &page.effect,
        ];
        assert!(texts.iter().all(|text| !text.is_empty()), "{name}");
        assert!(!page.look.is_empty() && !page.fix.is_empty(), "{name}");
        assert!(
            !page.title.ends_with('.') && !page.title.contains('|'),
            "{name}"
        );
    }
}

/// The file that a page names makes the finding: a page without one is of a finding that nobody makes.
#[test]
fn the_file_that_makes_it_names_it() {
    let pages = pages().unwrap();
    for id in FindingId::ALL {
        let name = id.row().0;
        let (by_variant, by_name) = (format!("FindingId::{id:?}"), format!("\"{name}\""));
        for file in &pages[name].from {
            let text = std::fs::read_to_string(repository().join(file)).unwrap();
            let makes = text.contains(&by_variant) || text.contains(&by_name);
            assert!(makes, "{name}: {file} does not make it");
        }
        assert!(!pages[name].from.is_empty(), "{name}");
    }
}

#[test]
fn related_findings_and_reports_exist() {
    let pages = pages().unwrap();
    let reports = std::fs::read_to_string(repository().join("docs/reports.md")).unwrap();
    for (name, page) in &pages {
        for related in &page.related {
            assert!(pages.contains_key(related), "{name}: {related}");
        }
        for report in &page.reports {
            let (id, thread) = report.split_once(' ').unwrap();
            let row = format!("| {id} | {thread} |");
            assert!(reports.contains(&row), "{name}: no row {row}");
        }
    }
}

#[test]
fn docs_are_in_sync() {
    let directory = repository().join("docs/findings");
    let files = files(&pages().unwrap());
    for (name, text) in &files {
        let committed = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert!(
            committed == *text,
            "{name} differs: run `cargo run -p node-agent -- explain --write docs/findings` and commit it"
        );
    }
    let there: BTreeSet<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, files.into_keys().collect());
}

#[test]
fn a_wrong_name_has_near_ones() {
    let pages = pages().unwrap();
    assert_eq!(closest("PKEY_NOT_GRANTET", &pages)[0], "PKEY_NOT_GRANTED");
    assert!(closest("MEMLOCK", &pages).contains(&"RUNTIME_MEMLOCK_LIMITED"));
    assert!(closest("", &pages).is_empty());
}
