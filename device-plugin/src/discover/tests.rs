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

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

fn docs(name: &str) -> String {
    std::fs::read_to_string(format!("{DOCS}/{name}")).unwrap()
}

/// `UPDATE_DOCS=1 cargo test -p device-plugin discover` writes it anew.
#[test]
fn the_schema_in_the_documentation_is_that_of_the_types() {
    let schema = schemars::schema_for!(report::Discovery);
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(format!("{DOCS}/discover.schema.json"), &text).unwrap();
    }
    assert_eq!(docs("discover.schema.json"), text);
}

#[test]
fn every_machine_keeps_to_the_schema() {
    let schema = serde_json::from_str(&docs("discover.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let machines = Path::new(MACHINE).parent().unwrap();
    let (mut kept, mut refused) = (0, Vec::new());
    for entry in std::fs::read_dir(machines).unwrap() {
        let path = entry.unwrap().path();
        let origin = Origin::File(path.clone());
        let Ok(machine) = read(&origin, None, &machine::Options::default()) else {
            refused.push(path.file_stem().unwrap().to_owned());
            continue;
        };
        let text = print(&machine, &ResourcePolicy::default(), Format::Json).unwrap();
        let printed = serde_json::from_str(&text).unwrap();
        let wrong: Vec<String> = schema
            .iter_errors(&printed)
            .map(|e| e.to_string())
            .collect();
        assert_eq!(wrong, [""; 0], "{}", path.display());
        kept += 1;
    }
    // It names one address twice.
    assert_eq!(refused, ["supermicro-x9drg-hf-m2075-edited"]);
    assert!(kept > 50, "{kept}");
    let mut broken: serde_json::Value = serde_json::from_str(&printed(Format::Json)).unwrap();
    broken["pairs"][0]["distance"] = "NEAR".into();
    assert!(!schema.is_valid(&broken), "it would take anything");
}

#[test]
fn the_example_and_the_version_in_the_documentation_are_what_is_printed() {
    let page = docs("discover.md");
    let (_, example) = page.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let file = Path::new(MACHINE).with_file_name("converged-a100x-2x.yaml");
    let machine = read(&Origin::File(file), None, &machine::Options::default()).unwrap();
    let printed = print(&machine, &ResourcePolicy::default(), Format::Json).unwrap();
    assert_eq!(example, printed);
    assert!(page.contains(&format!("schema {}", report::SCHEMA)));
}

/// Clouds hide the tree and ship this file instead; it describes the machine alone.
#[test]
fn a_topology_file_alone_describes_its_machine() {
    let file = Path::new(MACHINE).with_file_name("../xml/azure-ndv5-topo.xml");
    let origin = Origin::File(file.clone());
    let machine = read(&origin, None, &machine::Options::default()).unwrap();
    let text = print(&machine, &ResourcePolicy::default(), Format::Json).unwrap();
    let discovery: report::Discovery = serde_json::from_str(&text).unwrap();
    assert_eq!((discovery.pairs.len(), discovery.unpaired.len()), (8, 0));
    assert!(
        discovery
            .pairs
            .iter()
            .all(|pair| pair.distance == Distance::Pix)
    );
    let source = format!(
        "some distances come from the topology file {}",
        file.display()
    );
    assert!(discovery.notes.contains(&source), "{:?}", discovery.notes);
}
