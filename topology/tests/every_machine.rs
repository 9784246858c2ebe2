//! One golden for each machine file: distances, pairs with their reasons, preferred sets. Review a change with
//! `cargo insta review`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use topology::distance::Distance;
use topology::file::parse;
use topology::machine::Machine;
use topology::node_file::{NodeResource, devices};
use topology::partition::{gpu_key, partition};
use topology::policy::ResourcePolicy;
use topology::preferred::Preference;
use topology::report::{Discovery, discovery};

use support::{REFUSED, files, texts};

mod support;

/// What pods usually ask for.
const SIZES: [usize; 4] = [1, 2, 4, 8];

fn policy(max_distance: Distance) -> ResourcePolicy {
    ResourcePolicy {
        max_distance,
        ..ResourcePolicy::default()
    }
}

/// The resource of a machine's pairs as the device plugin gets it.
fn resource(machine: &Machine, policy: &ResourcePolicy) -> NodeResource {
    let paths = machine.paths();
    let partition = partition(machine, &paths, std::slice::from_ref(policy)).unwrap();
    let resource = &partition.resources[0];
    NodeResource {
        name: resource.name.clone(),
        kind: resource.kind,
        hold_down_seconds: 30,
        stable_up_seconds: 60,
        unhealthy_on_nic_down: true,
        envs: Vec::new(),
        nic_lists: Vec::new(),
        devices: devices(machine, &paths, resource),
    }
}

/// GPU names of the preferred sets, smallest first.
fn preferred(machine: &Machine, policy: &ResourcePolicy) -> String {
    let resource = resource(machine, policy);
    let names: BTreeMap<String, String> = machine
        .gpus
        .iter()
        .map(|gpu| (gpu_key(gpu), gpu.name()))
        .collect();
    let ids: Vec<String> = resource.devices.iter().map(|d| d.id.clone()).collect();
    let preference = Preference::new(&resource);
    let mut text = String::new();
    for size in SIZES.into_iter().filter(|size| *size <= ids.len()) {
        let chosen = preference.choose(&ids, &[], size);
        let mut gpus: Vec<&str> = chosen.iter().map(|id| names[id].as_str()).collect();
        gpus.sort_unstable();
        writeln!(text, "prefers {size}: {}", gpus.join(" ")).unwrap();
    }
    text
}

/// One row per GPU; a column per NIC, in the order of the first line.
fn distances(discovery: &Discovery) -> String {
    let mut text = "distances to".to_owned();
    for nic in &discovery.nics {
        write!(text, " {}", nic.name).unwrap();
    }
    text.push('\n');
    for gpu in &discovery.gpus {
        let row = &discovery.distances[&gpu.name];
        let cells: Vec<&str> = discovery
            .nics
            .iter()
            .map(|nic| row[&nic.name].name())
            .collect();
        writeln!(text, "{:<5} {}", gpu.name, cells.join(" ")).unwrap();
    }
    text
}

fn pairs(discovery: &Discovery) -> String {
    let mut text = String::new();
    for pair in &discovery.pairs {
        let shared = if pair.shared { ", shared" } else { "" };
        let nics = pair.nics.join(" ");
        writeln!(
            text,
            "{} + {nics} ({}{shared}): {}",
            pair.gpu, pair.distance, pair.reason
        )
        .unwrap();
    }
    for gpu in &discovery.unpaired {
        writeln!(text, "{} alone: {}", gpu.gpu, gpu.reason).unwrap();
    }
    text
}

/// The default policy; any distance too where the default leaves GPUs alone that a farther NIC would serve.
fn golden(machine: &Machine) -> String {
    let paths = machine.paths();
    let usual = discovery(machine, &paths, &policy(Distance::Pxb));
    let any = discovery(machine, &paths, &policy(Distance::Sys));
    let mut text = distances(&usual);
    write!(text, "\nmaxDistance PXB\n{}", pairs(&usual)).unwrap();
    text.push_str(&preferred(machine, &policy(Distance::Pxb)));
    if any.pairs.len() > usual.pairs.len() {
        write!(text, "\nmaxDistance SYS\n{}", pairs(&any)).unwrap();
        text.push_str(&preferred(machine, &policy(Distance::Sys)));
    }
    for note in &usual.notes {
        write!(text, "\nnote: {note}").unwrap();
    }
    text
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots/machines");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

#[test]
fn distances_pairs_reasons_and_preferred_sets() {
    let texts = texts();
    settings().bind(|| {
        for file in files() {
            insta::assert_snapshot!(file.name.clone(), golden(&file.machine));
        }
        let refused = parse(&texts[REFUSED]).unwrap_err();
        insta::assert_snapshot!(REFUSED, format!("refused: {refused}"));
    });
}

/// A machine file that goes must take its golden with it.
#[test]
fn every_golden_belongs_to_a_machine() {
    let machines: BTreeSet<String> = texts().into_keys().collect();
    assert_eq!(support::goldens(), machines);
}

/// A set that holds more than the size asked for, or another, would be refused by the kubelet.
#[test]
fn preferred_sets_have_their_size_on_every_machine() {
    let mut asked = 0;
    for file in files() {
        let resource = resource(&file.machine, &policy(Distance::Sys));
        let preference = Preference::new(&resource);
        let ids: Vec<String> = resource.devices.iter().map(|d| d.id.clone()).collect();
        for size in 1..=ids.len() {
            let chosen = preference.choose(&ids, &[], size);
            let distinct: BTreeSet<&String> = chosen.iter().collect();
            assert_eq!(distinct.len(), size, "{}", file.name);
            assert!(
                distinct.iter().all(|id| ids.contains(id)),
                "{}: {chosen:?}",
                file.name
            );
            asked += 1;
        }
    }
    assert!(asked > 500, "{asked} sets");
}
