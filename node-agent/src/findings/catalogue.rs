//! A page for each finding: what it means, what is right, how to look, how to fix it. Pure; `node-agent explain` prints and
//! writes the pages, tests hold that every finding has one and that `docs/findings` is what is written.
//!
//! The text stands in one YAML file for each topic, below `catalogue/`, and is compiled in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crds::node::Severity;
use serde::Deserialize;

use super::FindingId;

/// The pages, by topic.
const TOPICS: &[&str] = &[
    include_str!("catalogue/agent.yaml"),
    include_str!("catalogue/devices.yaml"),
    include_str!("catalogue/driver.yaml"),
    include_str!("catalogue/gpu_direct.yaml"),
    include_str!("catalogue/host.yaml"),
    include_str!("catalogue/network.yaml"),
];

/// How near a wrong name must be to be suggested: 1 is equality.
const NEAR: f64 = 0.7;

/// What is written about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// One line.
    pub title: String,
    /// What the finding's `component` names.
    pub component: String,
    /// Files of this repository that make it.
    pub from: Vec<String>,
    /// What was seen.
    pub seen: String,
    /// What is right, and why it matters.
    pub right: String,
    /// Commands that look and change nothing.
    pub look: Vec<String>,
    /// What to do, for each cause.
    pub fix: Vec<String>,
    /// What it keeps from happening.
    pub effect: String,
    /// Other findings that go with it.
    #[serde(default)]
    pub related: Vec<String>,
    /// Reports of users that it comes from: the id in `docs/reports.md`, and the public thread.
    #[serde(default)]
    pub reports: Vec<String>,
}

/// Why there are no pages.
#[derive(Debug, thiserror::Error)]
#[error("read the built-in pages of the findings")]
pub struct CatalogueError(#[from] serde_yaml::Error);

/// Every page, by the finding's name.
pub fn pages() -> Result<BTreeMap<String, Page>, CatalogueError> {
    let mut pages = BTreeMap::new();
    for topic in TOPICS {
        pages.extend(serde_yaml::from_str::<BTreeMap<String, Page>>(topic)?);
    }
    Ok(pages)
}

/// How bad the finding of that name is.
#[must_use]
pub fn severity(name: &str) -> Option<Severity> {
    let mut rows = FindingId::ALL.iter().map(|id| id.row());
    rows.find(|(id, _)| *id == name)
        .map(|(_, severity)| severity)
}

/// The page as Markdown, which is readable in a terminal too.
#[must_use]
pub fn markdown(name: &str, page: &Page) -> String {
    let severity = severity(name).map_or_else(String::new, |found| format!("{found:?}"));
    let mut out = format!("# {name}\n\n{}.\n\n", page.title);
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "| | |\n|---|---|\n| severity | {severity} |");
    let _ = writeln!(out, "| component | {} |", page.component);
    let _ = writeln!(out, "| made by | `{}` |", page.from.join("`, `"));
    for (head, text) in [("Seen", &page.seen), ("Right", &page.right)] {
        let _ = writeln!(out, "\n## {head}\n{}", text.trim_end());
    }
    let _ = writeln!(out, "\n## Look\n\n    {}", page.look.join("\n    "));
    list(&mut out, "Fix", page.fix.iter().cloned());
    let _ = writeln!(out, "\n## Effect\n{}", page.effect.trim_end());
    let link = |name: &String| format!("[{name}]({name}.md)");
    list(&mut out, "Related", page.related.iter().map(link));
    let report = |report: &String| format!("{report} ([reports](../reports.md))");
    list(&mut out, "Reports", page.reports.iter().map(report));
    out
}

fn list(out: &mut String, head: &str, items: impl Iterator<Item = String>) {
    let lines: Vec<String> = items
        .map(|item| format!("- {}\n", item.trim_end()))
        .collect();
    if !lines.is_empty() {
        let _ = write!(out, "\n## {head}\n{}", lines.concat());
    }
}

/// The table of all pages.
#[must_use]
pub fn index(pages: &BTreeMap<String, Page>) -> String {
    let mut out = "# Findings\n\nWhat `kubectl describe grn NODE` and `node-agent plan` show below Findings. `node-agent explain ID` prints a page on the node.\nWritten by `node-agent explain --write docs/findings` from `node-agent/src/findings/`.\n\n| id | severity | |\n|---|---|---|\n".to_owned();
    for (name, page) in pages {
        let severity = severity(name).map_or_else(String::new, |found| format!("{found:?}"));
        let _ = writeln!(out, "| [{name}]({name}.md) | {severity} | {} |", page.title);
    }
    out
}

/// Every file of `docs/findings`, by name.
#[must_use]
pub fn files(pages: &BTreeMap<String, Page>) -> BTreeMap<String, String> {
    let file = |(name, page): (&String, &Page)| (format!("{name}.md"), markdown(name, page));
    let mut files: BTreeMap<String, String> = pages.iter().map(file).collect();
    files.insert("README.md".to_owned(), index(pages));
    files
}

/// Names that somebody may have meant, the nearest first.
#[must_use]
pub fn closest<'a>(name: &str, pages: &'a BTreeMap<String, Page>) -> Vec<&'a str> {
    let likeness = |id: &str| strsim::jaro_winkler(id, name);
    let mut near: Vec<&str> = pages.keys().map(String::as_str).collect();
    near.retain(|id| likeness(id) >= NEAR || (!name.is_empty() && id.contains(name)));
    near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    near.truncate(3);
    near
}

#[cfg(test)]
mod tests;
