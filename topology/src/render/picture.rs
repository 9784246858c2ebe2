//! The picture: boxes of the layout, pair lines coloured by distance, and a legend.

use svg::Document;
use svg::node::element::{Line, Rectangle, Text, Title};

use super::layout::{LINE, Labelled, Layout, Rect, text_width};
use crate::distance::Distance;
use crate::machine::Machine;
use crate::paths::Paths;
use crate::report::{Discovery, PairEntry};

const LEVELS: [Distance; 6] = [
    Distance::Pix,
    Distance::Pxb,
    Distance::Phb,
    Distance::Node,
    Distance::Sys,
    Distance::Unknown,
];
/// Height of the legend.
const TOP: usize = 40;

/// Draws the machine with its pairs.
#[must_use]
pub fn svg(machine: &Machine, paths: &Paths, discovery: &Discovery) -> String {
    let layout = Layout::new(machine, TOP);
    let width = layout.width.max(legend_width());
    let mut document = Document::new()
        .set("viewBox", format!("0 0 {width} {}", layout.height))
        .set("width", width)
        .set("height", layout.height)
        .set("font-family", "monospace")
        .set("font-size", 11)
        .add(frame(
            Rect {
                x: 0,
                y: 0,
                width,
                height: layout.height,
            },
            "#ffffff",
            "#ffffff",
        ));
    for (boxes, fill) in [(&layout.numa_nodes, "#f4f4f4"), (&layout.groups, "#e9eef5")] {
        for labelled in boxes {
            document = labelled_box(document, labelled, fill, "#888888");
        }
    }
    for pair in &discovery.pairs {
        document = pair_lines(document, &layout, machine, paths, pair);
    }
    for (devices, fill) in [(&layout.gpus, "#d9f0d3"), (&layout.nics, "#fde7c8")] {
        for labelled in devices.values() {
            document = labelled_box(document, labelled, fill, "#333333");
        }
    }
    let mut text = legend(document).to_string();
    text.push('\n');
    text
}

fn frame(rect: Rect, fill: &str, stroke: &str) -> Rectangle {
    Rectangle::new()
        .set("x", rect.x)
        .set("y", rect.y)
        .set("width", rect.width)
        .set("height", rect.height)
        .set("rx", 3)
        .set("fill", fill)
        .set("stroke", stroke)
}

fn labelled_box(mut document: Document, labelled: &Labelled, fill: &str, stroke: &str) -> Document {
    document = document.add(frame(labelled.rect, fill, stroke));
    for (at, line) in labelled.lines.iter().enumerate() {
        let (x, y) = (labelled.rect.x + 6, labelled.rect.y + (at + 1) * LINE);
        document = document.add(Text::new(line).set("x", x).set("y", y));
    }
    document
}

fn pair_lines(
    mut document: Document,
    layout: &Layout,
    machine: &Machine,
    paths: &Paths,
    pair: &PairEntry,
) -> Document {
    let gpu = machine
        .gpus
        .iter()
        .find(|gpu| gpu.name() == pair.gpu)
        .map(|gpu| gpu.index);
    for name in &pair.nics {
        let nic = machine
            .nics
            .iter()
            .find(|nic| crate::report::nic_label(machine, nic) == *name)
            .map(|nic| nic.index);
        let ends = gpu
            .zip(nic)
            .and_then(|(gpu, nic)| Some((layout.gpus.get(&gpu)?, layout.nics.get(&nic)?)));
        let Some((from, to)) = ends else { continue };
        let distance = gpu
            .zip(nic)
            .map_or(Distance::Unknown, |(gpu, nic)| paths.distance(gpu, nic));
        document = document.add(line(from.rect, to.rect, distance, pair));
    }
    document
}

fn line(gpu: Rect, nic: Rect, distance: Distance, pair: &PairEntry) -> Line {
    let dashes = if pair.shared { "6 3" } else { "none" };
    // A line to another row of groups may run upwards; it then starts at the top of the GPU's box.
    let (from, to) = if nic.y > gpu.y {
        (gpu.y + gpu.height, nic.y)
    } else {
        (gpu.y, nic.y + nic.height)
    };
    Line::new()
        .set("x1", gpu.x + gpu.width / 2)
        .set("y1", from)
        .set("x2", nic.x + nic.width / 2)
        .set("y2", to)
        .set("stroke", colour(distance))
        .set("stroke-width", 3)
        .set("stroke-dasharray", dashes)
        .add(Title::new(format!("{}: {}", pair.gpu, pair.reason)))
}

fn colour(distance: Distance) -> &'static str {
    match distance {
        Distance::Pix => "#1a7f37",
        Distance::Pxb => "#5aa02c",
        Distance::Phb => "#bf8700",
        Distance::Node => "#e16f24",
        Distance::Sys => "#cf222e",
        Distance::Unknown => "#6e7781",
    }
}

fn legend_width() -> usize {
    16 + LEVELS
        .iter()
        .map(|level| entry_width(*level))
        .sum::<usize>()
        + text_width(SHARED)
}

const SHARED: &str = "dashed: the NIC is shared";

fn entry_width(level: Distance) -> usize {
    50 + text_width(level.name())
}

fn legend(mut document: Document) -> Document {
    let mut x = 14;
    for level in LEVELS {
        let stroke = Line::new()
            .set("x1", x)
            .set("y1", 18)
            .set("x2", x + 24)
            .set("y2", 18);
        document = document.add(stroke.set("stroke", colour(level)).set("stroke-width", 3));
        document = document.add(Text::new(level.name()).set("x", x + 30).set("y", 22));
        x += entry_width(level);
    }
    document.add(Text::new(SHARED).set("x", x).set("y", 22))
}
