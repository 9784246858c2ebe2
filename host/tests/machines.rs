//! Every machine of the topology crate's tests, written as a `/sys` tree and read back.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use host::fixture::{ConfigSpace, FixtureOptions, write};
use host::machine::{Options, machine};
use host::root::Root;
use topology::distance::Distance;
use topology::file::{Completeness, MachineFile, parse};
use topology::machine::{Gpu, Machine, Nic, PciKind};
use topology::nccl_xml;
use topology::paths::Paths;

use rules::Difference;

#[path = "../../topology/tests/support/rules.rs"]
mod rules;

/// A machine file, what the fixture says that a reader sees, and what the reader saw.
struct Trip {
    file: MachineFile,
    seen: Machine,
    read: Machine,
}

/// Every machine, written and read once for all tests.
fn trips() -> &'static [Trip] {
    static TRIPS: OnceLock<Vec<Trip>> = OnceLock::new();
    TRIPS.get_or_init(|| files().into_iter().map(trip).collect())
}

fn trip(file: MachineFile) -> Trip {
    let (seen, read) = round_trip(&file, &options(&file));
    Trip { file, seen, read }
}

fn files() -> Vec<MachineFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topology/tests/machines");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    paths.sort();
    assert!(paths.len() > 100, "the machine files are missing");
    // A file that contradicts itself is refused by the parser, whose own tests name it.
    paths
        .iter()
        .filter_map(|path| parse(&std::fs::read_to_string(path).unwrap()).ok())
        .collect()
}

/// Trees are thousands of small files, made and removed: where there is a tmpfs, that takes a tenth of the time.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// NVIDIA's GPUs and AMD's, which some machine files have for the shape of their tree.
fn options(file: &MachineFile) -> FixtureOptions {
    let reader = Options {
        gpu_vendors: BTreeSet::from([0x10de, 0x1002]),
        ..Options::default()
    };
    FixtureOptions {
        name: file.name.clone(),
        reader,
        ..FixtureOptions::default()
    }
}

fn round_trip(file: &MachineFile, options: &FixtureOptions) -> (Machine, Machine) {
    let directory = scratch();
    let root = Root::new(directory.path());
    let seen = write(&file.machine, options, &root)
        .unwrap_or_else(|error| panic!("{}: {error}", file.name));
    (seen, machine(&root, &options.reader))
}

#[test]
fn every_machine_reads_back_as_it_was_written() {
    assert!(trips().len() > 110);
    for Trip { file, seen, read } in trips() {
        assert_eq!(read.functions, seen.functions, "{}", file.name);
        assert_eq!(read.gpus, seen.gpus, "{}", file.name);
        assert_eq!(read.nics, seen.nics, "{}", file.name);
    }
}

#[test]
fn every_described_device_is_read_back() {
    for Trip { file, read, .. } in trips() {
        assert!(read.gpus.len() >= file.machine.gpus.len(), "{}", file.name);
        assert_eq!(read.nics.len(), file.machine.nics.len(), "{}", file.name);
        for (address, described) in &file.machine.functions {
            let function = &read.functions[address];
            if !matches!(described.kind, PciKind::Gpu | PciKind::Nic | PciKind::Other) {
                assert_eq!(function.kind, described.kind, "{} {address}", file.name);
            }
        }
        for nic in file.machine.nics.iter().filter(|nic| nic.rdma.is_some()) {
            let read = read
                .nics
                .iter()
                .find(|other| other.rdma == nic.rdma)
                .unwrap();
            let free = nic.pci.is_none() || file.machine.gpus.iter().any(|gpu| gpu.pci == nic.pci);
            assert!(free || read.pci == nic.pci, "{} {}", file.name, nic.name());
            assert!(
                nic.numa.known().is_none() || read.numa == nic.numa,
                "{} {}",
                file.name,
                nic.name()
            );
        }
    }
}

/// What `/sys` alone says of a described machine: no stated distances.
fn tree_only(file: &MachineFile) -> Machine {
    Machine {
        stated: None,
        ..file.machine.clone()
    }
}

#[test]
fn paths_are_the_same_before_and_after() {
    let mut compared = 0;
    for Trip { file, read, .. } in trips()
        .iter()
        .filter(|trip| !trip.file.machine.functions.is_empty())
    {
        let described = tree_only(file);
        let (before, after) = (described.paths(), read.paths());
        for gpu in &described.gpus {
            let Some(gpu_after) = read.gpus.iter().find(|other| other.pci == gpu.pci) else {
                panic!("{}: GPU{} is gone", file.name, gpu.index)
            };
            for nic in &described.nics {
                let same = |other: &&topology::machine::Nic| {
                    other.pci == nic.pci && (nic.rdma.is_none() || other.rdma == nic.rdma)
                };
                let nic_after = read.nics.iter().find(same).unwrap();
                let before = before.gpu_nic(gpu.index, nic.index).unwrap();
                let after = after.gpu_nic(gpu_after.index, nic_after.index).unwrap();
                let place = format!("{}: GPU{} and {}", file.name, gpu.index, nic.name());
                assert_eq!(after.distance, before.distance, "{place}");
                assert_eq!(after.nccl, before.nccl, "{place}");
                assert!(
                    before.hops.is_none() || after.hops == before.hops,
                    "{place}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "only {compared} paths were compared");
}

#[test]
fn machines_known_by_their_matrix_show_nothing_but_numa() {
    for Trip { file, read, .. } in trips()
        .iter()
        .filter(|trip| trip.file.machine.functions.is_empty())
    {
        let paths = read.paths();
        for (gpu, nic) in read
            .gpus
            .iter()
            .flat_map(|gpu| read.nics.iter().map(move |nic| (gpu, nic)))
        {
            let distance = paths.distance(gpu.index, nic.index);
            assert!(
                distance >= Distance::Node,
                "{}: {} {}",
                file.name,
                gpu.name(),
                nic.name()
            );
        }
    }
}

#[test]
fn a_full_tree_needs_no_configuration_space() {
    let mut checked = 0;
    for Trip {
        file, read: full, ..
    } in trips()
        .iter()
        .filter(|trip| trip.file.completeness == Completeness::Full)
    {
        // A PCIe-to-PCI bridge looks like a switch from outside, and a bridge inside the GPU card shifts the order.
        if file
            .machine
            .functions
            .values()
            .any(|function| function.kind == PciKind::Bridge)
        {
            continue;
        }
        for config in [ConfigSpace::Header, ConfigSpace::Absent] {
            let (_, read) = round_trip(
                file,
                &FixtureOptions {
                    config,
                    ..options(file)
                },
            );
            assert_eq!(read.functions.len(), full.functions.len(), "{}", file.name);
            assert_eq!(read.paths(), full.paths(), "{}", file.name);
            checked += 1;
        }
    }
    assert!(checked >= 10, "only {checked} trees were checked");
}

/// The NIC that was read for a described one.
fn counterpart<'a>(read: &'a Machine, nic: &Nic) -> &'a Nic {
    let same =
        |other: &&Nic| other.pci == nic.pci && (nic.rdma.is_none() || other.rdma == nic.rdma);
    read.nics.iter().find(same).unwrap()
}

/// What was read; in a guest with the distances of its cloud's topology file, as the agent reads it.
fn with_topology_file(Trip { file, read, .. }: &Trip) -> Machine {
    let Some(functions) = file.topology_file.clone() else {
        return read.clone();
    };
    let whole = Machine {
        functions,
        ..file.machine.clone()
    };
    let text = nccl_xml::write(&whole);
    let stated = nccl_xml::read(&text, "/etc/topo.xml", read).unwrap();
    Machine {
        stated: Some(stated),
        ..read.clone()
    }
}

/// Distances as they were read, by the NICs that the file describes.
fn levels<'a>(
    file: &'a MachineFile,
    (read, paths): (&Machine, &Paths),
    gpu: &Gpu,
) -> Vec<(&'a Nic, Distance)> {
    let own = read.gpus.iter().find(|other| other.pci == gpu.pci).unwrap();
    let level = |nic| paths.distance(own.index, counterpart(read, nic).index);
    let nics = file.machine.nics.iter();
    nics.map(|nic| (nic, level(nic))).collect()
}

/// For machines whose tree is known: what `/sys` shows has the closest NICs that the file states, at the level that it states
/// or one that differs by a rule of `docs/machines.md`.
#[test]
fn the_closest_nics_that_are_read_are_those_that_the_files_state() {
    let mut compared = 0;
    for trip in trips()
        .iter()
        .filter(|trip| !trip.file.machine.functions.is_empty())
    {
        let file = &trip.file;
        let read = with_topology_file(trip);
        let paths = read.paths();
        for gpu in &file.machine.gpus {
            let Some(closest) = file.closest.get(&gpu.index) else {
                continue;
            };
            let levels = levels(file, (&read, &paths), gpu);
            let best = levels.iter().map(|(_, level)| *level).min();
            let near = levels.iter().filter(|(_, level)| Some(*level) == best);
            let names: Vec<String> = near.clone().map(|(nic, _)| nic.name()).collect();
            assert_eq!(names, closest.nics, "{}: {}", file.name, gpu.name());
            for (nic, computed) in near {
                let reported = closest.distance.unwrap();
                let difference = Difference {
                    file,
                    gpu,
                    nic,
                    reported,
                    computed: *computed,
                };
                let agrees = reported == *computed || difference.rule().is_some();
                assert!(agrees, "{}: {} {computed}", file.name, gpu.name());
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "only {compared} closest NICs were compared");
}

/// Where a machine has both a tree and a printed matrix, cell by cell.
#[test]
fn the_distances_that_are_read_are_those_of_the_printed_matrix() {
    let mut compared = 0;
    for Trip { file, read, .. } in trips() {
        let Some(stated) = file.machine.stated.as_ref() else {
            continue;
        };
        if file.machine.functions.is_empty() || file.topology_file.is_some() {
            continue;
        }
        let paths = read.paths();
        for gpu in &file.machine.gpus {
            for (nic, computed) in levels(file, (read, &paths), gpu) {
                let Some(reported) = stated
                    .cells
                    .get(&gpu.index)
                    .and_then(|row| row.get(&nic.index))
                else {
                    continue;
                };
                let difference = Difference {
                    file,
                    gpu,
                    nic,
                    reported: *reported,
                    computed,
                };
                let agrees = *reported == computed || difference.rule().is_some();
                assert!(agrees, "{}: {} {}", file.name, gpu.name(), nic.name());
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "only {compared} cells were compared");
}

/// What a capture masks are identities: tree, devices and distances are those of the machine.
#[test]
fn a_capture_of_every_kind_of_tree_has_the_distances_of_the_machine() {
    let mut captured = 0;
    for file in files()
        .into_iter()
        .filter(|file| !file.machine.functions.is_empty())
    {
        let options = options(&file);
        let (live, copy) = (scratch(), scratch());
        let (live, copy) = (Root::new(live.path()), Root::new(copy.path()));
        write(&file.machine, &options, &live).unwrap();
        host::capture::capture(&live, &copy).unwrap();
        let (before, after) = (
            machine(&live, &options.reader),
            machine(&copy, &options.reader),
        );
        assert_eq!(after.functions, before.functions, "{}", file.name);
        assert_eq!(after.nics, before.nics, "{}", file.name);
        assert_eq!(after.paths(), before.paths(), "{}", file.name);
        for (masked, own) in after.gpus.iter().zip(&before.gpus) {
            assert_eq!(masked.pci, own.pci, "{}", file.name);
            assert_ne!(masked.uuid, own.uuid, "{}", file.name);
        }
        captured += 1;
    }
    assert!(captured > 40, "only {captured} machines were captured");
}
