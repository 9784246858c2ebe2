//! Trees below `/sys` and `/proc` that no kernel makes: everything that cannot be read is unknown in its place, nothing
//! panics, and nothing waits for ever or reads without end.
//!
//! `PROPTEST_CASES` sets the budget: an eighth of it is run here.

#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use host::facts::facts;
use host::fixture::{FixtureOptions, write};
use host::machine::glance::Glance;
use host::machine::{Options, machine};
use host::root::Root;
use proptest::prelude::*;
use topology::file::parse;
use topology::partition::partition;
use topology::policy::ResourcePolicy;

const MACHINES: [&str; 2] = [
    "2gpu-2nic-other-socket-interleaved",
    "azure-ndv5-h100-in-guest",
];

/// What becomes of a file, a link or a directory.
#[derive(Clone, Debug)]
enum Damage {
    Gone,
    Directory,
    Link(&'static str),
    Pipe,
    Text(String),
    Bytes(Vec<u8>),
    Long,
}

fn damage() -> impl Strategy<Value = Damage> {
    let links = [
        ".",
        "..",
        "/",
        "self",
        "/proc/self/mem",
        "/dev/zero",
        "nowhere",
    ];
    let texts = [
        "",
        "\n",
        "-1",
        "-2147483649",
        "4294967296",
        "18446744073709551616",
        "0x",
        "0xffffffffffffffffff",
        "99: WEIRD",
        "4:ACTIVE:4",
        "400 Gb/sec (4X NDR",
        "é\u{202e}",
        "../../../etc/passwd",
        "0000:00:00.0",
    ];
    let texts = texts.map(str::to_owned).to_vec();
    prop_oneof![
        2 => Just(Damage::Gone),
        1 => Just(Damage::Directory),
        3 => proptest::sample::select(links.to_vec()).prop_map(Damage::Link),
        1 => Just(Damage::Pipe),
        6 => proptest::sample::select(texts).prop_map(Damage::Text),
        2 => proptest::collection::vec(any::<u8>(), 0..600).prop_map(Damage::Bytes),
        1 => Just(Damage::Long),
    ]
}

/// Everything below a directory, in order; links are not followed.
fn walk(directory: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let is_dir = path.symlink_metadata().unwrap().is_dir();
        out.push(path.clone());
        if is_dir {
            walk(&path, out);
        }
    }
}

/// A damage before this one may have taken the place away, or put a link above it: nothing outside of `tree` is touched.
fn hit(tree: &Path, path: &Path, damage: &Damage) {
    let inside = |above: PathBuf| above.starts_with(tree);
    let above = path.parent().and_then(|above| above.canonicalize().ok());
    let Some(meta) = path
        .symlink_metadata()
        .ok()
        .filter(|_| above.is_some_and(inside))
    else {
        return;
    };
    if meta.is_dir() {
        std::fs::remove_dir_all(path).unwrap();
    } else {
        std::fs::remove_file(path).unwrap();
    }
    match damage {
        Damage::Gone => {}
        Damage::Directory => std::fs::create_dir(path).unwrap(),
        Damage::Link("self") => {
            std::os::unix::fs::symlink(path.file_name().unwrap(), path).unwrap();
        }
        Damage::Link(to) => std::os::unix::fs::symlink(to, path).unwrap(),
        Damage::Pipe => {
            nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        Damage::Text(text) => std::fs::write(path, text).unwrap(),
        Damage::Bytes(bytes) => std::fs::write(path, bytes).unwrap(),
        Damage::Long => std::fs::write(path, "9".repeat(3 << 20)).unwrap(),
    }
}

/// Thousands of small files: where there is a tmpfs, they are made in a tenth of the time.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn read(root: &Root) {
    let options = Options::default();
    let seen = machine(root, &options);
    let paths = seen.paths();
    if let Ok(partition) = partition(&seen, &paths, &[ResourcePolicy::default()]) {
        let devices = &partition.resources[0].devices;
        let gpus: BTreeSet<_> = devices.iter().map(|device| &device.gpu).collect();
        assert_eq!(gpus.len(), devices.len(), "a GPU is in two pairs");
    }
    let first = facts(root, &options, None);
    let again = facts(root, &options, Some(&first));
    assert_eq!(first, again, "the same tree is read twice");
    let _ = Glance::devices(root, &seen);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    #[test]
    fn a_damaged_tree_is_read_to_its_end(
        which in 0..MACHINES.len(),
        damages in proptest::collection::vec((any::<prop::sample::Index>(), damage()), 1..12),
    ) {
        let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topology/tests/machines");
        let text = std::fs::read_to_string(machines.join(format!("{}.yaml", MACHINES[which])));
        let file = parse(&text.unwrap()).unwrap();
        let directory = scratch();
        let tree = directory.path().canonicalize().unwrap();
        let root = Root::new(directory.path());
        write(&file.machine, &FixtureOptions::default(), &root).unwrap();
        let mut places = Vec::new();
        walk(&tree, &mut places);
        for (at, damage) in &damages {
            hit(&tree, at.get::<PathBuf>(&places), damage);
        }
        read(&root);
    }
}
