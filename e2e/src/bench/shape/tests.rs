use super::*;

fn written(gpus: usize, functions: usize) -> NodeFile {
    let base = tempfile::tempdir().unwrap();
    let node = Shape::new(gpus, functions)
        .write(&base.path().join("node"))
        .unwrap();
    NodeFile::parse(&fs::read_to_string(node.node_file).unwrap()).unwrap()
}

fn sizes(file: &NodeFile) -> Vec<(&str, usize)> {
    let resources = file.resources.iter();
    resources
        .map(|resource| (resource.name.as_str(), resource.devices.len()))
        .collect()
}

#[test]
fn every_gpu_has_a_pair_and_every_other_function_is_offered() {
    assert_eq!(sizes(&written(8, 8)), [(PAIRS, 8)]);
    assert_eq!(sizes(&written(8, 64)), [(PAIRS, 8), (NICS, 56)]);
    assert_eq!(sizes(&written(16, 136)), [(PAIRS, 16), (NICS, 120)]);
}

#[test]
fn gpus_that_outnumber_the_nics_share_them() {
    let file = written(16, 8);
    assert_eq!(sizes(&file), [(PAIRS, 16)]);
    assert!(file.resources[0].devices.iter().all(|device| device.shared));
}

#[test]
fn a_machine_has_as_many_functions_as_asked_for() {
    for shape in SHAPES {
        let machine = shape.machine();
        assert_eq!(
            (machine.gpus.len(), machine.nics.len()),
            (shape.gpus, shape.functions)
        );
        let devices = machine
            .functions
            .values()
            .filter(|f| f.kind == PciKind::Nic);
        assert_eq!(devices.count(), shape.functions, "{}", shape.title());
    }
}

#[test]
fn a_machine_is_named_by_its_size() {
    assert_eq!("8x968".parse::<Shape>().unwrap(), Shape::new(8, 968));
    for wrong in ["8", "8x7", "x8", "axb"] {
        assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
    }
}
