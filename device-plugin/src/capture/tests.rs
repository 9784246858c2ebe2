use std::path::PathBuf;

use host::fixture::{FixtureOptions, write};
use topology::policy::ResourcePolicy;

use super::*;
use crate::discover::{self, Format, Origin};

const MACHINE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../topology/tests/machines/nvidia-dgx-h100.yaml"
);

fn pairs(origin: &Origin) -> Vec<(String, Vec<String>)> {
    let machine = discover::read(origin, None, &host::machine::Options::default()).unwrap();
    let text = discover::print(&machine, &ResourcePolicy::default(), Format::Json).unwrap();
    let discovery: topology::report::Discovery = serde_json::from_str(&text).unwrap();
    discovery
        .pairs
        .into_iter()
        .map(|pair| (pair.gpu, pair.nics))
        .collect()
}

#[test]
fn a_captured_machine_has_the_pairs_of_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let (live, out) = (dir.path().join("live"), dir.path().join("out"));
    std::fs::create_dir(&live).unwrap();
    let described = topology::file::parse(&std::fs::read_to_string(MACHINE).unwrap()).unwrap();
    write(
        &described.machine,
        &FixtureOptions::default(),
        &Root::new(&live),
    )
    .unwrap();
    capture(&live, &out).unwrap();
    let before = pairs(&Origin::Root(live));
    assert_eq!(before.len(), 8);
    assert_eq!(pairs(&Origin::Root(out)), before);
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("old"), "").unwrap();
    let error = capture(dir.path(), dir.path()).unwrap_err();
    assert!(matches!(error, CaptureError::NotEmpty(_)), "{error}");
    assert!(dir.path().join("old").exists());
}

#[test]
fn a_root_that_is_not_there_is_refused() {
    let error = capture(
        &PathBuf::from("/nonexistent"),
        &PathBuf::from("/nonexistent/out"),
    )
    .unwrap_err();
    assert!(error.to_string().contains("--root /nonexistent"), "{error}");
}
