use super::{FileError, parse};
use crate::distance::Distance;
use crate::fact::Fact;

const SMALL: &str = r#"
name: small
title: two GPUs, one NIC
source: {kind: test, ref: none, note: none}
facts: {virtual: false, cpu: one, notes: [by hand]}
gpus:
- {index: 0, product: A100, pci: "0000:01:00.0", numa: 0}
- {index: 1, product: unknown (two), numa: -1}
nics: [{index: 0, rdma: mlx5_0, numa: null, link_layer: unknown}]
matrix:
  order: [GPU0, GPU1, NIC0]
  rows:
    GPU0: [X, NV12, PIX]
    GPU1: [NV12, X, null]
pcie_tree: {completeness: none}
closest_nics: {GPU0: {distance: PIX, nics: [mlx5_0]}, GPU1: {distance: null, nics: []}}
"#;

#[test]
fn a_small_file_reads_with_unknown_absent_and_known_apart() {
    let file = parse(SMALL).unwrap();
    let machine = &file.machine;
    assert_eq!(machine.gpus[0].numa, Fact::Known(0));
    assert_eq!(machine.gpus[1].numa, Fact::Absent);
    assert!(matches!(machine.nics[0].numa, Fact::Unreadable(_)));
    assert!(matches!(machine.gpus[1].product, Fact::Unreadable(_)));
    assert_eq!(machine.gpus[0].nvlinks.get(&1), Some(&12));
    assert_eq!(machine.paths().distance(0, 0), Distance::Pix);
    assert_eq!(machine.paths().distance(1, 0), Distance::Unknown);
    assert_eq!(file.closest[&0].distance, Some(Distance::Pix));
}

fn error(from: &str, to: &str) -> FileError {
    let text = SMALL.replacen(from, to, 1);
    assert_ne!(text, SMALL);
    parse(&text).unwrap_err()
}

#[test]
fn errors_name_field_value_and_remedy() {
    for (from, to, field, value) in [
        ("0000:01:00.0", "01:00", "gpus[0].pci", "01:00"),
        ("[X, NV12, PIX]", "[X, NVx, PIX]", "matrix.rows.GPU0", "NVx"),
        (
            "[X, NV12, PIX]",
            "[X, NV12, PIC]",
            "matrix.rows.GPU0",
            "PIC",
        ),
        ("[X, NV12, PIX]", "[X, NV12]", "matrix.rows.GPU0", "2 cells"),
        (
            "[GPU0, GPU1, NIC0]",
            "[GPU0, GPU1, NIC9]",
            "matrix.order",
            "NIC9",
        ),
        ("numa: -1", "numa: -7", "gpus[1].numa", "-7"),
        (
            "closest_nics: {GPU0",
            "closest_nics: {GPUx",
            "closest_nics.GPUx",
            "GPUx",
        ),
    ] {
        let text = error(from, to).to_string();
        assert!(
            text.contains(field) && text.contains(value) && text.contains("write"),
            "{text}"
        );
    }
}

#[test]
fn an_index_that_occurs_twice_is_refused() {
    assert!(matches!(
        error("{index: 1", "{index: 0"),
        FileError::DuplicateIndex {
            list: "gpus",
            index: 0
        }
    ));
}

#[test]
fn an_unknown_field_is_refused() {
    assert!(matches!(error("title:", "titel:"), FileError::Yaml(_)));
}
