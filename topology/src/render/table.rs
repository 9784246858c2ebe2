//! The table that `discover` prints.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};

use crate::report::{Discovery, GpuEntry};

/// Pairs with their reasons, the matrix of distances, and the notes.
#[must_use]
pub fn table(discovery: &Discovery) -> String {
    let mut parts = vec![pairs(discovery)];
    if !discovery.gpus.is_empty() && !discovery.nics.is_empty() {
        parts.push(matrix(discovery));
    }
    parts.extend(discovery.notes.iter().map(|note| format!("Note: {note}")));
    let mut text = parts.join("\n");
    text.push('\n');
    text
}

fn pairs(discovery: &Discovery) -> String {
    let mut table = new_table(&["GPU", "PCI", "NUMA", "NIC", "distance", "why"]);
    for gpu in &discovery.gpus {
        table.add_row(row(discovery, gpu));
    }
    if discovery.gpus.is_empty() {
        return "No GPU.".to_owned();
    }
    table.to_string()
}

fn row(discovery: &Discovery, gpu: &GpuEntry) -> Vec<String> {
    let pci = gpu.pci.clone().unwrap_or_else(|| "?".to_owned());
    let numa = gpu
        .numa
        .map_or_else(|| "?".to_owned(), |numa| numa.to_string());
    let (nic, distance, reason) = match discovery.pairs.iter().find(|pair| pair.gpu == gpu.name) {
        Some(pair) => {
            let shared = if pair.shared { " (shared)" } else { "" };
            (
                format!("{}{shared}", pair.nics.join(", ")),
                pair.distance.to_string(),
                pair.reason.clone(),
            )
        }
        None => (
            "none".to_owned(),
            "-".to_owned(),
            unpaired_reason(discovery, &gpu.name),
        ),
    };
    vec![gpu.name.clone(), pci, numa, nic, distance, reason]
}

fn unpaired_reason(discovery: &Discovery, gpu: &str) -> String {
    let entry = discovery.unpaired.iter().find(|entry| entry.gpu == gpu);
    entry.map_or_else(String::new, |entry| entry.reason.clone())
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
