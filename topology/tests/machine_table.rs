//! `docs/machines.md`: what is computed for every machine file, beside what was reported for it.
//!
//! `UPDATE_DOCS=1 cargo test -p topology --test machine_table` writes the page anew.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use topology::distance::{Distance, DistanceSource};
use topology::file::{Completeness, MachineFile, parse};
use topology::machine::Gpu;
use topology::pairing::pair;
use topology::policy::ResourcePolicy;

use support::rules::{Difference, Rule};
use support::{docs, file, texts};

mod support;

const HEAD: &str = "\
# Machines

Real machines that were published by their owners, in issues, topology files, captures of `/sys` and printed matrices, and
what this project computes for each. The files are in `topology/tests/machines`; distances cell by cell, every pair with
its reason, and the preferred sets are in `topology/tests/snapshots/machines`. Trees are also written as `/sys`, read back by
`host`, and compared again (`host/tests/machines.rs`).

* **distance from**: *tree*, the PCIe ancestry as `/sys` shows it (*partial* where the source has only some of the bridges); *topology
  file*, a cloud's, because its guests hide the tree; *matrix*, as somebody printed it with `nvidia-smi topo -m`.
* **closest NIC**: the level of each GPU's closest NIC. *= reported* where every GPU's level and its set of closest NICs are those
  that were reported; else the reported levels, and the rule by which they differ.
* **pairs**, with the default policy (`maxDistance: PXB`, `nicSharing: WhenScarce`): GPUs with a NIC of their own, GPUs that
  share one because GPUs outnumber the NICs within reach, GPUs without.

`UPDATE_DOCS=1 cargo test -p topology --test machine_table` writes this page; a test holds it.

| machine | GPUs | NICs | distance from | closest NIC | own | shared | none | rule |
|---|---|---|---|---|---|---|---|---|
";

fn source(file: &MachineFile) -> &'static str {
    let stated = file.machine.stated.as_ref().map(|stated| &stated.source);
    match (file.completeness, stated) {
        (_, Some(DistanceSource::TopologyFile(_))) => "topology file",
        (Completeness::None, _) => "matrix",
        (Completeness::SwitchesOnly, _) => "tree, partial",
        (Completeness::Full | Completeness::Virtual, _) => "tree",
    }
}

/// What a matrix printed counts before what was derived.
fn reported(file: &MachineFile, gpu: &Gpu) -> Option<Distance> {
    let stated = file.machine.stated.as_ref();
    let printed = stated
        .filter(|stated| stated.source == DistanceSource::Matrix)
        .and_then(|stated| stated.cells.get(&gpu.index)?.values().min().copied());
    printed.or_else(|| file.closest.get(&gpu.index)?.distance)
}

fn computed(file: &MachineFile, gpu: &Gpu) -> Option<Distance> {
    let paths = file.machine.paths();
    let nics = file.machine.nics.iter();
    nics.map(|nic| paths.distance(gpu.index, nic.index)).min()
}

/// `4× PIX, 4× PXB`.
fn levels(of: impl Iterator<Item = Option<Distance>>) -> String {
    let mut counts: BTreeMap<Distance, usize> = BTreeMap::new();
    for level in of.flatten() {
        *counts.entry(level).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(l, n)| format!("{n}× {l}")).collect();
    counts.join(", ")
}

fn rules(file: &MachineFile) -> BTreeSet<Rule> {
    let paths = file.machine.paths();
    let mut rules = BTreeSet::new();
    for gpu in &file.machine.gpus {
        let levels = (reported(file, gpu), computed(file, gpu));
        let (Some(reported), Some(computed)) = levels else {
            continue;
        };
        let nic = file
            .machine
            .nics
            .iter()
            .find(|nic| paths.distance(gpu.index, nic.index) == computed);
        if let Some(nic) = nic.filter(|_| reported != computed) {
            let difference = Difference {
                file,
                gpu,
                nic,
                reported,
                computed,
            };
            let rule = difference.rule();
            rules.insert(rule.unwrap_or_else(|| panic!("{}: {}", file.name, gpu.name())));
        }
    }
    rules
}

fn comparison(file: &MachineFile) -> String {
    let gpus = || file.machine.gpus.iter();
    let computed = levels(gpus().map(|gpu| computed(file, gpu)));
    let reported = levels(gpus().map(|gpu| reported(file, gpu)));
    match (gpus().count(), file.machine.nics.len()) {
        (0, _) => "no GPU".to_owned(),
        (_, 0) => "no NIC".to_owned(),
        _ if computed == reported => format!("{computed} = reported"),
        _ => format!("{computed}, reported {reported}"),
    }
}

fn row(file: &MachineFile) -> String {
    let machine = &file.machine;
    let pairing = pair(machine, &machine.paths(), &ResourcePolicy::default());
    let shared = pairing.pairs.iter().filter(|pair| pair.shared).count();
    let own = pairing.pairs.len() - shared;
    let rules: Vec<String> = rules(file).iter().map(|r| r.number().to_string()).collect();
    format!(
        "| {} | {} | {} | {} | {} | {own} | {shared} | {} | {} |\n",
        file.name,
        machine.gpus.len(),
        machine.nics.len(),
        source(file),
        comparison(file),
        pairing.unpaired.len(),
        rules.join(", "),
    )
}

fn page() -> String {
    let mut text = HEAD.to_owned();
    for (name, yaml) in texts() {
        match parse(&yaml) {
            Ok(_) => text.push_str(&row(&file(&name))),
            Err(why) => writeln!(text, "| {name} | | | | refused: {why} | | | | |").unwrap(),
        }
    }
    text.push_str("\n## Rules\n\n");
    for rule in Rule::ALL {
        writeln!(text, "{}. {}.", rule.number(), rule.text()).unwrap();
    }
    text
}

#[test]
fn the_page_in_the_documentation_is_what_is_computed() {
    let wanted = page();
    assert!(
        docs("machines.md", &wanted) == wanted,
        "docs/machines.md is not what is computed; look at the change that this writes:\n  \
         UPDATE_DOCS=1 cargo test -p topology --test machine_table"
    );
}

#[test]
fn every_rule_is_used_by_a_machine() {
    let machines = texts().into_keys().filter(|name| name != support::REFUSED);
    let used: BTreeSet<Rule> = machines.flat_map(|name| rules(&file(&name))).collect();
    assert_eq!(used, BTreeSet::from(Rule::ALL));
}

/// The levels of a row are counts; here each GPU is compared with its own.
#[test]
fn a_machine_without_a_rule_has_every_gpu_as_reported() {
    for name in texts().into_keys().filter(|name| name != support::REFUSED) {
        let file = file(&name);
        if rules(&file).is_empty() {
            for gpu in &file.machine.gpus {
                let levels = (computed(&file, gpu), reported(&file, gpu));
                assert_eq!(levels.0, levels.1, "{name}: {}", gpu.name());
            }
        }
    }
}
