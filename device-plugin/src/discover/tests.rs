use topology::distance::Distance;

use super::*;

const MACHINE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../topology/tests/machines/nvidia-dgx-h100.yaml"
);

fn dgx() -> Machine {
    read(
        &Origin::File(PathBuf::from(MACHINE)),
        None,
        &machine::Options::default(),
    )
    .unwrap()
}

fn printed(format: Format) -> String {
    print(&dgx(), &ResourcePolicy::default(), format).unwrap()
}

#[test]
fn the_same_discovery_comes_as_json_and_as_yaml() {
    let json: report::Discovery = serde_json::from_str(&printed(Format::Json)).unwrap();
    let yaml: report::Discovery = serde_yaml::from_str(&printed(Format::Yaml)).unwrap();
    assert_eq!(json, yaml);
    assert_eq!(json.pairs.len(), 8);
}

#[test]
fn table_and_picture_show_every_gpu() {
    let (table, picture) = (printed(Format::Table), printed(Format::Svg));
    for gpu in (0..8).map(|n| format!("GPU{n}")) {
        assert!(table.contains(&gpu) && picture.contains(&gpu), "{gpu}");
    }
    assert!(picture.starts_with("<svg"), "{}", &picture[..40]);
}

#[test]
fn a_stricter_distance_leaves_fewer_pairs() {
    let count = |max_distance| {
        let policy = ResourcePolicy {
            max_distance,
            ..ResourcePolicy::default()
        };
        report::discovery(&dgx(), &dgx().paths(), &policy)
            .pairs
            .len()
    };
    assert!(count(Distance::Pix) <= count(Distance::Sys));
    assert_eq!(count(Distance::Sys), 8);
}

#[test]
fn an_empty_root_is_a_machine_without_devices() {
    let dir = tempfile::tempdir().unwrap();
    let machine = read(
        &Origin::Root(dir.path().to_owned()),
        None,
        &machine::Options::default(),
    )
    .unwrap();
    assert!(machine.gpus.is_empty() && machine.nics.is_empty());
}

#[test]
fn errors_name_what_was_asked_for() {
    let ask = |origin: Origin| {
        read(&origin, None, &machine::Options::default())
            .unwrap_err()
            .to_string()
    };
    assert!(ask(Origin::Root(PathBuf::from("/nonexistent"))).contains("--root /nonexistent"));
    assert_eq!(
        ask(Origin::File(PathBuf::from("/nonexistent"))),
        "read /nonexistent"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine.yaml");
    std::fs::write(&file, "- no machine").unwrap();
    assert_eq!(
        ask(Origin::File(file.clone())),
        format!("machine file {}", file.display())
    );
}

#[test]
fn a_topology_file_must_be_one() {
    let dir = tempfile::tempdir().unwrap();
    let xml = dir.path().join("topo.xml");
    std::fs::write(&xml, "<graph/>").unwrap();
    let origin = Origin::File(PathBuf::from(MACHINE));
    assert!(matches!(
        read(&origin, Some(&xml), &machine::Options::default()),
        Err(DiscoverError::Topology(_))
    ));
}
