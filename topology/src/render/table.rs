//! The table that `discover` prints.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};

use crate::report::{Discovery, GpuEntry};

/// Pairs, the reason for each, the matrix of distances, and the notes.
#[must_use]
pub fn table(discovery: &Discovery) -> String {
    if discovery.gpus.is_empty() {
        return "No GPU.\n".to_owned();
    }
    let mut parts = vec![pairs(discovery)];
    parts.extend(
        discovery
            .gpus
            .iter()
            .map(|gpu| format!("{}: {}", gpu.name, reason(discovery, &gpu.name))),
    );
    if !discovery.nics.is_empty() {
        parts.push(matrix(discovery));
    }
    parts.extend(discovery.notes.iter().map(|note| format!("Note: {note}")));
    let mut text = parts.join("\n");
    text.push('\n');
    text
}

fn pairs(discovery: &Discovery) -> String {
    let mut table = new_table(&["GPU", "PCI", "NUMA", "NIC", "distance", "hops"]);
    for gpu in &discovery.gpus {
        table.add_row(row(discovery, gpu));
    }
    table.to_string()
}

fn row(discovery: &Discovery, gpu: &GpuEntry) -> Vec<String> {
    let unknown = || "?".to_owned();
    let pci = gpu.pci.clone().unwrap_or_else(unknown);
    let numa = gpu.numa.map_or_else(unknown, |numa| numa.to_string());
    let own = vec![gpu.name.clone(), pci, numa];
    let rest = match discovery.pairs.iter().find(|pair| pair.gpu == gpu.name) {
        Some(pair) => {
            let shared = if pair.shared { " (shared)" } else { "" };
            let hops = pair.hops.map_or_else(unknown, |hops| hops.to_string());
            [
                format!("{}{shared}", pair.nics.join(", ")),
                pair.distance.to_string(),
                hops,
            ]
        }
        None => ["none", "-", "-"].map(str::to_owned),
    };
    own.into_iter().chain(rest).collect()
}

fn reason<'a>(discovery: &'a Discovery, gpu: &str) -> &'a str {
    let pair = discovery
        .pairs
        .iter()
        .find(|pair| pair.gpu == gpu)
        .map(|pair| pair.reason.as_str());
    let unpaired = || {
        discovery
            .unpaired
            .iter()
            .find(|entry| entry.gpu == gpu)
            .map(|entry| entry.reason.as_str())
    };
    pair.or_else(unpaired).unwrap_or_default()
}

fn matrix(discovery: &Discovery) -> String {
    let names: Vec<&str> = discovery.nics.iter().map(|nic| nic.name.as_str()).collect();
    let mut header = vec![""];
    header.extend(&names);
    let mut table = new_table(&header);
    for gpu in &discovery.gpus {
        let distance = |nic: &&str| {
            let known = discovery
                .distances
                .get(&gpu.name)
                .and_then(|row| row.get(*nic));
            known.map_or_else(|| "?".to_owned(), ToString::to_string)
        };
        let cells = names.iter().map(distance);
        table.add_row(
            std::iter::once(gpu.name.clone())
                .chain(cells)
                .collect::<Vec<_>>(),
        );
    }
    table.to_string()
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    // The width of a terminal would be a look at the environment, and the same machine must give the same bytes.
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table
}
