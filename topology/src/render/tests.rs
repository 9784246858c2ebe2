use proptest::prelude::*;

use super::layout::{LINE, Labelled, Layout, Rect, text_width};
use super::{svg, table};
use crate::machine::Machine;
use crate::policy::ResourcePolicy;
use crate::report::discovery;
use crate::test_machines::machine;

/// The rectangles of all texts.
fn texts(layout: &Layout) -> Vec<Rect> {
    let lines = |labelled: &Labelled| {
        let rect = labelled.rect;
        let text = |(at, line): (usize, &String)| Rect {
            x: rect.x + 6,
            y: rect.y + at * LINE,
            width: text_width(line),
            height: LINE,
        };
        labelled
            .lines
            .iter()
            .enumerate()
            .map(text)
            .collect::<Vec<_>>()
    };
    let boxes = layout
        .numa_nodes
        .iter()
        .chain(&layout.groups)
        .chain(layout.gpus.values())
        .chain(layout.nics.values());
    boxes.flat_map(lines).collect()
}

fn overlap(a: &Rect, b: &Rect) -> bool {
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

/// Texts do not overlap, stay inside the picture, and devices stay inside their groups.
fn assert_readable(machine: &Machine) {
    let layout = Layout::new(machine, 40);
    assert_eq!(
        (layout.gpus.len(), layout.nics.len()),
        (machine.gpus.len(), machine.nics.len())
    );
    let texts = texts(&layout);
    for (at, a) in texts.iter().enumerate() {
        assert!(
            a.x + a.width <= layout.width && a.y + a.height <= layout.height,
            "{a:?} is outside"
        );
        assert!(
            texts[at + 1..].iter().all(|b| !overlap(a, b)),
            "{a:?} is overlapped"
        );
    }
    for device in layout.gpus.values().chain(layout.nics.values()) {
        let holders = layout
            .groups
            .iter()
            .filter(|group| holds(&group.rect, &device.rect))
            .count();
        assert_eq!(holders, 1, "{:?}", device.lines);
    }
}

fn holds(outer: &Rect, inner: &Rect) -> bool {
    let (right, bottom) = (inner.x + inner.width, inner.y + inner.height);
    outer.x <= inner.x
        && outer.y <= inner.y
        && right <= outer.x + outer.width
        && bottom <= outer.y + outer.height
}

proptest! {
    #[test]
    fn no_text_overlaps_another(machine in machine(0..=16, 0..=20)) {
        assert_readable(&machine);
    }

    #[test]
    fn the_picture_is_well_formed_and_has_a_line_per_pair(machine in machine(0..=6, 0..=6)) {
        let paths = machine.paths();
        let discovery = discovery(&machine, &paths, &ResourcePolicy::default());
        let picture = svg(&machine, &paths, &discovery);
        let document = roxmltree::Document::parse(&picture).unwrap();
        let reasons = document.descendants().filter(|node| node.has_tag_name("title")).count();
        prop_assert_eq!(reasons, discovery.pairs.len());
        prop_assert!(document.descendants().any(|node| node.text().is_some_and(|text| text.trim() == "PIX")));
    }
}

#[test]
fn names_that_are_markup_are_escaped() {
    let mut machine = Machine {
        nics: vec![crate::test_machines::nic(0, None)],
        ..Machine::default()
    };
    machine.nics[0].rdma = Some("<mlx5 & co>".to_owned());
    let paths = machine.paths();
    let picture = svg(
        &machine,
        &paths,
        &discovery(&machine, &paths, &ResourcePolicy::default()),
    );
    let document = roxmltree::Document::parse(&picture).unwrap();
    assert!(
        document
            .descendants()
            .any(|node| node.text().is_some_and(|text| text.trim() == "<mlx5 & co>"))
    );
}

#[test]
fn a_machine_without_gpus_says_so() {
    let machine = Machine::default();
    let discovery = discovery(&machine, &machine.paths(), &ResourcePolicy::default());
    assert_eq!(table(&discovery), "No GPU.\n");
}
