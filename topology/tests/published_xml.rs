//! Topology files and hwloc exports as others publish them, read alone (`discover --machine FILE.xml`), for the machine that
//! they belong to, and written again.
//!
//! Three of them are in this repository. The rest are others' data and no part of it: the tests look for them in
//! `GPURDMA_TOPOLOGY_FILES`, else in `../shared/machines/xml` beside the workspace, and say which are not laid.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::{BTreeMap, BTreeSet};

use topology::description::machine as describe;
use topology::distance::Distance;
use topology::machine::{Machine, Nic};
use topology::nccl_xml::{XmlError, read, write};
use topology::paths::Paths;
use topology::pci::PciAddress;

use support::{file, published};

mod support;

/// File, machine file, GPUs, NICs, levels of the GPUs' closest NICs.
type Published = (&'static str, &'static str, usize, usize, &'static str);

const NCCL: [Published; 10] = [
    ("aws-g5.48xl-topo.xml", "aws-g5-a10g", 0, 0, ""),
    ("aws-p4d-24xl-topo.xml", "aws-p4d-a100", 8, 4, "8 PIX"),
    ("aws-p4de-24xl-topo.xml", "aws-p4de-a100-80", 8, 4, "8 PIX"),
    (
        "aws-p5.48xl-topo-rejected.xml",
        "aws-p5-h100-handmade",
        8,
        32,
        "8 PIX",
    ),
    ("azure-ncv4-topo.xml", "azure-ncv4-a100", 4, 0, ""),
    (
        "azure-ndv2-topo.xml",
        "azure-ndv2-v100",
        8,
        1,
        "4 NODE 4 SYS",
    ),
    ("azure-ndv4-topo.xml", "azure-ndv4-a100", 8, 8, "8 PIX"),
    ("azure-ndv5-topo.xml", "azure-ndv5-h100", 8, 8, "8 PIX"),
    ("oci-H100-topology.xml", "oci-bm-gpu-h100-8", 8, 16, "8 PXB"),
    (
        "oci-topo-flattened.xml",
        "oci-bm-gpu4-8-a100",
        8,
        8,
        "8 PIX",
    ),
];

/// NCCL refuses their version; they describe a machine all the same.
const RCCL: [Published; 8] = [
    (
        "rccl-topo_3p_pcie_1.xml",
        "rccl-3x-mi210-pcie",
        3,
        1,
        "2 NODE 1 SYS",
    ),
    (
        "rccl-topo_4p_940.xml",
        "rccl-4x-mi300a-slingshot",
        4,
        4,
        "4 NODE",
    ),
    (
        "rccl-topo_8p1h_3.xml",
        "rccl-8x-mi250x-4net",
        8,
        4,
        "8 NODE",
    ),
    (
        "rccl-topo_8p1h_5.xml",
        "rccl-8gcd-mi250-8roce",
        8,
        8,
        "8 PXB",
    ),
    (
        "rccl-topo_8p6l_5nic.xml",
        "rccl-8x-mi50-5nic",
        8,
        5,
        "8 NODE",
    ),
    ("rccl-topo_8p_940.xml", "rccl-8x-mi300x-8nic", 8, 8, "8 PXB"),
    (
        "rccl-topo_8p_rome_4n_1.xml",
        "rccl-8x-mi100-4ib",
        8,
        4,
        "8 PXB",
    ),
    (
        "rccl-topo_8p_rome_n4.xml",
        "rccl-8gpu-nps4-nic-apart",
        8,
        1,
        "8 SYS",
    ),
];

fn vendors() -> BTreeSet<u16> {
    BTreeSet::from([0x10de])
}

/// Those that are laid, with their text.
fn laid(files: &[Published]) -> Vec<(Published, String)> {
    let texts = files.iter().map(|file| Some((*file, published(file.0)?)));
    texts.flatten().collect()
}

fn described(name: &str, text: &str) -> Machine {
    describe(text, name, &vendors()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Closest NICs of each GPU, all by their addresses.
fn closest(
    machine: &Machine,
    paths: &Paths,
) -> BTreeMap<PciAddress, (Distance, BTreeSet<PciAddress>)> {
    let of = |gpu: usize| {
        let best = machine
            .nics
            .iter()
            .map(|nic| paths.distance(gpu, nic.index))
            .min()?;
        let near = machine
            .nics
            .iter()
            .filter(|nic| paths.distance(gpu, nic.index) == best);
        Some((best, near.filter_map(|nic| nic.pci).collect()))
    };
    machine
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu.pci?, of(gpu.index)?)))
        .collect()
}

fn levels(machine: &Machine) -> String {
    let mut counts: BTreeMap<Distance, usize> = BTreeMap::new();
    for (level, _) in closest(machine, &machine.paths()).into_values() {
        *counts.entry(level).or_default() += 1;
    }
    let words: Vec<String> = counts
        .iter()
        .map(|(level, count)| format!("{count} {level}"))
        .collect();
    words.join(" ")
}

#[test]
fn a_file_alone_describes_the_machine() {
    for ((name, _, gpus, nics, expected), text) in laid(&[&NCCL[..], &RCCL[..]].concat()) {
        let machine = described(name, &text);
        let found = (machine.gpus.len(), machine.nics.len(), levels(&machine));
        assert_eq!(found, (gpus, nics, expected.to_owned()), "{name}");
    }
}

/// The machine files were made of the same texts by other means.
#[test]
fn a_file_alone_tells_what_the_machine_file_tells() {
    let mut compared = 0;
    for ((name, of, gpus, ..), text) in laid(&[&NCCL[..], &RCCL[..]].concat()) {
        let (alone, machine) = (described(name, &text), file(of).machine);
        let (found, given) = (
            closest(&alone, &alone.paths()),
            closest(&machine, &machine.paths()),
        );
        // A file without classes does not tell which functions are GPUs.
        if gpus > 0 {
            assert_eq!(found, given, "{name}");
            compared += found.len();
        }
        let names = |machine: &Machine| -> BTreeSet<String> {
            machine
                .nics
                .iter()
                .filter_map(|nic| nic.rdma.clone())
                .collect()
        };
        assert!(
            names(&alone).is_superset(&names(&machine)) || gpus == 0,
            "{name}"
        );
    }
    assert!(compared >= 24, "{compared} GPUs compared");
}

#[test]
fn a_file_states_the_distances_of_the_machine_that_it_belongs_to() {
    for ((name, of, ..), text) in laid(&NCCL) {
        let file = file(of);
        let stated = read(&text, name, &file.machine).unwrap();
        for (gpu, closest) in file
            .closest
            .iter()
            .filter(|(_, closest)| !closest.nics.is_empty())
        {
            let best = stated.cells[gpu].values().min().unwrap();
            // NCCL has no host bridge: docs/machines.md, rule 1.
            let reported = closest.distance.map(|level| {
                if level == Distance::Phb {
                    Distance::Node
                } else {
                    level
                }
            });
            assert_eq!(Some(*best), reported, "{name}: GPU{gpu}");
            let near = |nic: &&Nic| stated.cells[gpu].get(&nic.index) == Some(best);
            let near: Vec<String> = file
                .machine
                .nics
                .iter()
                .filter(near)
                .map(Nic::name)
                .collect();
            assert_eq!(near, closest.nics, "{name}: GPU{gpu}");
        }
    }
}

#[test]
fn nccl_would_refuse_rccls_version_so_no_distance_is_taken_from_it() {
    for ((name, of, ..), text) in laid(&RCCL) {
        let error = read(&text, name, &file(of).machine).unwrap_err();
        assert!(matches!(error, XmlError::Root { .. }), "{name}: {error}");
    }
}

/// The distance between every two functions that are GPUs or NICs.
fn distances(machine: &Machine) -> BTreeMap<(PciAddress, PciAddress), Distance> {
    let paths = machine.paths();
    let pairs = machine
        .gpus
        .iter()
        .flat_map(|gpu| machine.nics.iter().map(move |nic| (gpu, nic)));
    let cell = |(gpu, nic): (&topology::machine::Gpu, &Nic)| {
        Some(((gpu.pci?, nic.pci?), paths.distance(gpu.index, nic.index)))
    };
    pairs.filter_map(cell).collect()
}

#[test]
fn read_write_read_is_stable() {
    let mut files = 0;
    for ((name, ..), text) in laid(&[&NCCL[..], &RCCL[..]].concat()) {
        let first = described(name, &text);
        let written = write(&first);
        let second = described(name, &written);
        let devices = |machine: &Machine| -> Vec<_> {
            machine
                .gpus
                .iter()
                .map(|gpu| (gpu.pci, gpu.numa.clone()))
                .collect()
        };
        assert_eq!(devices(&second), devices(&first), "{name}");
        assert_eq!(distances(&second), distances(&first), "{name}");
        for (address, function) in &second.functions {
            assert_eq!(function, &first.functions[address], "{name}: {address}");
        }
        let links = |machine: &Machine| machine.tree_file.clone().unwrap().links;
        assert!(
            links(&second)
                .iter()
                .all(|(at, link)| links(&first)[at] == *link),
            "{name}"
        );
        assert_eq!(write(&second), written, "{name}");
        files += 1;
    }
    assert!(files >= 3, "{files} files");
}

/// What an export of hwloc tells: tree, NUMA nodes and RDMA devices; not which bridge is a switch, nor any port.
#[test]
fn hwloc_exports_tell_the_tree() {
    for (name, of) in [
        ("hwloc-nvidiaDGX2.xml", "nvidia-dgx2h-v100"),
        ("hwloc-power8gpudistances.xml", "ibm-minsky-p100"),
    ] {
        let Some(text) = published(name) else {
            continue;
        };
        let (export, machine) = (described(name, &text), file(of).machine);
        let places = |machine: &Machine| -> Vec<_> {
            machine
                .gpus
                .iter()
                .map(|gpu| (gpu.pci, gpu.numa.known().copied()))
                .collect()
        };
        assert_eq!(places(&export), places(&machine), "{name}");
        let (found, given) = (export.paths(), machine.paths());
        for a in 0..machine.gpus.len() {
            for b in a + 1..machine.gpus.len() {
                let (found, given) = (found.gpu_gpu(a, b).unwrap(), given.gpu_gpu(a, b).unwrap());
                assert_eq!(found.distance, given.distance, "{name}: GPU{a} GPU{b}");
            }
        }
        assert!(
            export.nics.is_empty(),
            "{name}: the export was made without them"
        );
    }
}

#[test]
fn hwloc_exports_name_rdma_devices_and_their_faults_are_refused() {
    if let Some(text) = published("hwloc-16intel64-manyVFs.xml") {
        let export = described("manyVFs.xml", &text);
        let names: Vec<String> = export.nics.iter().map(Nic::name).collect();
        assert_eq!(names, ["usnic_0", "usnic_1", "usnic_2"]);
        assert!(export.gpus.is_empty());
    }
    if let Some(text) = published("hwloc-32em64t-2n8c2t-pci-wholeio.xml") {
        let error = describe(&text, "wholeio.xml", &vendors()).unwrap_err();
        assert!(
            error.to_string().contains("0000:04:00.0 occurs twice"),
            "{error}"
        );
    }
}
