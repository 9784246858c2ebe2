//! Every machine file: it loads or is refused for the fault that its notes state, and the computed distances agree with
//! what was printed or derived when the machine was recorded.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::BTreeSet;

use topology::distance::{Cells, Distance};
use topology::file::{Completeness, FileError, MachineFile, parse};
use topology::machine::Machine;
use topology::pairing::pair;
use topology::policy::ResourcePolicy;

use support::rules::{Difference, Rule};
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

/// The rules that explain every reported class which is not the computed one.
fn explained(file: &MachineFile) -> BTreeSet<Rule> {
    let paths = file.machine.paths();
    let mut rules = BTreeSet::new();
    for (gpu, closest) in &file.closest {
        let gpu = file.machine.gpus.iter().find(|g| g.index == *gpu).unwrap();
        for nic in &file.machine.nics {
            let (Some(reported), true) = (closest.distance, closest.nics.contains(&nic.name()))
            else {
                continue;
            };
            let computed = paths.distance(gpu.index, nic.index);
            if reported != computed {
                let difference = Difference {
                    file,
                    gpu,
                    nic,
                    reported,
                    computed,
                };
                let rule = difference.rule();
                let place = format!("{}: {} {}", file.name, gpu.name(), nic.name());
                rules.insert(rule.unwrap_or_else(|| panic!("{place}: {reported}, {computed}")));
            }
        }
    }
    rules
}

#[test]
fn closest_nics_are_those_that_the_files_state() {
    let mut compared = 0;
    for file in files() {
        for (&gpu, closest) in &file.closest {
            let (distance, nics) = computed(&file.machine, gpu);
            let stated: BTreeSet<String> = closest.nics.iter().cloned().collect();
            assert_eq!(nics, stated, "{}: GPU{gpu}", file.name);
            assert_eq!(
                distance.is_some(),
                closest.distance.is_some(),
                "{}",
                file.name
            );
            compared += 1;
        }
    }
    assert!(compared > 600, "{compared} GPUs compared");
}

#[test]
fn a_class_that_differs_from_the_reported_one_does_so_by_one_rule() {
    let used: BTreeSet<Rule> = files().iter().flat_map(explained).collect();
    let expected = [
        Rule::NcclHasNoHostBridge,
        Rule::PathNotTold,
        Rule::NumaNotTold,
    ];
    assert_eq!(used, BTreeSet::from(expected), "a rule that is not needed");
}

/// PIX, PXB and PHB of a tree are the same in every view; NODE and SYS depend on who looked.
#[test]
fn a_printed_matrix_agrees_with_the_tree() {
    let (mut compared, mut differing) = (0, 0);
    for file in files()
        .iter()
        .filter(|file| file.completeness != Completeness::None && file.topology_file.is_none())
    {
        let Some(stated) = &file.machine.stated else {
            continue;
        };
        let paths = &file.machine.paths();
        for (a, b, reported) in entries(&stated.gpu_cells) {
            let tree = paths.gpu_gpu(a, b).unwrap().distance;
            let near = tree.min(reported) <= Distance::Phb;
            assert!(!near || tree == reported, "{}: GPU{a} GPU{b}", file.name);
        }
        for (a, b, reported) in entries(&stated.cells) {
            let computed = paths.distance(a, b);
            let difference = Difference {
                file,
                gpu: file.machine.gpus.iter().find(|gpu| gpu.index == a).unwrap(),
                nic: file.machine.nics.iter().find(|nic| nic.index == b).unwrap(),
                reported,
                computed,
            };
            let rule = difference.rule();
            let agrees = reported == computed || rule == Some(Rule::NumaOfWhoLooked);
            assert!(agrees, "{}: {reported} {computed} {rule:?}", file.name);
            compared += 1;
            differing += usize::from(reported != computed);
        }
    }
    assert!(
        compared > 50 && differing > 0,
        "{compared} cells, {differing} differ"
    );
}

fn entries(cells: &Cells) -> impl Iterator<Item = (usize, usize, Distance)> + '_ {
    let row = |(a, row): (&usize, &std::collections::BTreeMap<usize, Distance>)| {
        let a = *a;
        row.iter()
            .map(move |(b, d)| (a, *b, *d))
            .collect::<Vec<_>>()
    };
    cells.iter().flat_map(row)
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
