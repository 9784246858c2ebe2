//! Every machine file: it loads or is refused for the fault that its notes state, and the computed distances agree with
//! what was printed or derived when the machine was recorded.

use std::collections::{BTreeMap, BTreeSet};

use topology::distance::Distance;
use topology::file::{Completeness, FileError, parse};
use topology::machine::Machine;
use topology::pairing::pair;
use topology::policy::ResourcePolicy;

use support::{REFUSED, files, texts};

mod support;

#[test]
fn every_file_loads_or_is_refused_for_the_fault_that_it_states() {
    let texts = texts();
    assert!(texts.len() >= 115, "{} files", texts.len());
    let error = parse(&texts[REFUSED]).unwrap_err();
    assert!(
        matches!(&error, FileError::DuplicateAddress(pci) if pci.to_string() == "0000:04:00.0"),
        "{error}"
    );
    assert_eq!(files().len(), texts.len() - 1);
}

/// Why the closest NICs of a file differ from the computed ones.
enum Difference {
    /// An NCCL dump has one CPU vertex per NUMA node and no host bridge: its PHB may be NODE, and NODE, the farther of
    /// the two, is what the tree proves.
    PhbOfNcclIsNode,
    /// The file's class comes from a printed matrix or a note, because bridges are missing from its tree: the class is
    /// not compared, the NICs are.
    BridgesMissing,
    /// The file's distances come from NUMA nodes that it does not give.
    NumaMissing,
}

fn differences() -> BTreeMap<&'static str, Vec<Difference>> {
    use Difference::{BridgesMissing, NumaMissing, PhbOfNcclIsNode};
    BTreeMap::from([
        ("aws-g5-a10g", vec![PhbOfNcclIsNode]),
        ("azure-ndv2-v100", vec![PhbOfNcclIsNode]),
        ("rccl-3x-mi210-pcie", vec![PhbOfNcclIsNode]),
        ("rccl-4x-mi300a-slingshot", vec![PhbOfNcclIsNode]),
        ("rccl-8x-mi250x-4net", vec![PhbOfNcclIsNode]),
        ("rccl-8x-mi50-5nic", vec![PhbOfNcclIsNode]),
        ("v100-pcie-8x-two-switches", vec![PhbOfNcclIsNode]),
        ("workstation-t1000-roce0", vec![PhbOfNcclIsNode]),
        ("xeon-icx-2x-a100-pcie-cx6dx", vec![PhbOfNcclIsNode]),
        // A second bridge level in front of the GPU is not in the source; nvidia-smi prints PXB.
        ("nvidia-dgx-h100", vec![BridgesMissing]),
        // The log that it was taken from names the common bridge only, and no NUMA node of most GPUs.
        ("hgx-a100-8-epyc-one-ib", vec![BridgesMissing, NumaMissing]),
    ])
}

fn computed(machine: &Machine, gpu: usize) -> (Option<Distance>, BTreeSet<String>) {
    let paths = machine.paths();
    let best = machine
        .nics
        .iter()
        .map(|nic| paths.distance(gpu, nic.index))
        .min();
    let at_best = machine
        .nics
        .iter()
        .filter(|nic| Some(paths.distance(gpu, nic.index)) == best);
    (best, at_best.map(topology::machine::Nic::name).collect())
}

fn agrees(stated: Option<Distance>, ours: Option<Distance>, allowed: &[Difference]) -> bool {
    let excuse = |difference: &Difference| match difference {
        Difference::PhbOfNcclIsNode => {
            (stated, ours) == (Some(Distance::Phb), Some(Distance::Node))
        }
        Difference::BridgesMissing => (stated, ours) == (Some(Distance::Pxb), Some(Distance::Pix)),
        Difference::NumaMissing => (stated, ours) == (Some(Distance::Sys), Some(Distance::Unknown)),
    };
    stated == ours || allowed.iter().any(excuse)
}

#[test]
fn closest_nics_are_those_that_the_files_state() {
    let (mut compared, differences) = (0, differences());
    let mut excused = BTreeSet::new();
    for file in files() {
        let allowed = differences
            .get(file.name.as_str())
            .map_or(&[][..], Vec::as_slice);
        for (&gpu, closest) in &file.closest {
            let (distance, nics) = computed(&file.machine, gpu);
            let stated: BTreeSet<String> = closest.nics.iter().cloned().collect();
            assert_eq!(nics, stated, "{}: GPU{gpu}", file.name);
            assert!(
                agrees(closest.distance, distance, allowed),
                "{}: GPU{gpu}: {:?} {distance:?}",
                file.name,
                closest.distance
            );
            if closest.distance != distance {
                excused.insert(file.name.clone());
            }
            compared += 1;
        }
    }
    assert!(compared > 600, "{compared} GPUs compared");
    let listed: BTreeSet<String> = differences.keys().map(ToString::to_string).collect();
    assert_eq!(
        excused, listed,
        "an exception that is no longer needed must go"
    );
}

/// PIX, PXB and PHB of a tree are the same in every view; NODE and SYS depend on who looked.
#[test]
fn a_printed_matrix_agrees_with_the_tree() {
    let mut compared = 0;
    for file in files()
        .iter()
        .filter(|file| file.completeness != Completeness::None && file.topology_file.is_none())
    {
        let Some(stated) = &file.machine.stated else {
            continue;
        };
        let paths = &file.machine.paths();
        let gpus = stated
            .gpu_cells
            .iter()
            .flat_map(|(a, row)| row.iter().map(move |(b, d)| (paths.gpu_gpu(*a, *b), *d)));
        let nics = stated
            .cells
            .iter()
            .flat_map(|(a, row)| row.iter().map(move |(b, d)| (paths.gpu_nic(*a, *b), *d)));
        for (path, printed) in gpus.chain(nics) {
            let tree = path.unwrap().distance;
            if tree <= Distance::Phb || printed <= Distance::Phb {
                assert_eq!(tree, printed, "{}", file.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared} cells compared");
}

#[test]
fn a_machine_that_is_known_by_its_matrix_has_just_its_distances() {
    for file in files()
        .iter()
        .filter(|file| file.completeness == Completeness::None)
    {
        let stated = file.machine.stated.as_ref().unwrap();
        let paths = file.machine.paths();
        for (gpu, row) in &stated.cells {
            for (nic, printed) in row {
                assert_eq!(
                    paths.distance(*gpu, *nic),
                    *printed,
                    "{}: GPU{gpu} NIC{nic}",
                    file.name
                );
            }
        }
    }
}

#[test]
fn every_machine_is_paired_and_no_nic_is_in_two_undeclared_pairs() {
    for file in files() {
        for max_distance in [Distance::Pix, Distance::Pxb, Distance::Sys] {
            let policy = ResourcePolicy {
                max_distance,
                ..ResourcePolicy::default()
            };
            let pairing = pair(&file.machine, &file.machine.paths(), &policy);
            assert_eq!(
                pairing.pairs.len() + pairing.unpaired.len(),
                file.machine.gpus.len(),
                "{}",
                file.name
            );
            let mut met = BTreeSet::new();
            for pair in &pairing.pairs {
                assert!(pair.distance <= max_distance, "{}", file.name);
                assert!(
                    pair.shared || met.insert(pair.nics[0]),
                    "{}: {pairing:?}",
                    file.name
                );
            }
        }
    }
}
