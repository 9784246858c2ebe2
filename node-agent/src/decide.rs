//! From what was read and what is asked to what should be: one pure function, [`decide`]. The command line and
//! [`crate::cycle`] call it; nothing here reads or writes.

use std::collections::{BTreeMap, BTreeSet};

use crds::node::Finding;
use k8s_openapi::jiff::Timestamp;
use topology::machine::{Machine, NicRole};
use topology::node_file::{NodeFile, SCHEMA};
use topology::partition::Partition;
use topology::pci::PciAddress;
use topology::policy::ResourceKind;

use crate::cdi;
use crate::desired::Desired;
use crate::devices::{self, Context, Devices, Required};
use crate::findings::{self, FindingId};
use crate::foreign::{self, ForeignMemory};
use crate::gpu_direct;
use crate::handover::offered;
use crate::held::Held;
use crate::inspect;
use crate::maintenance;
use crate::observed::{Kept, Observed};
use crate::others::Others;
use crate::own_nics::OwnNics;
use crate::planner::{self, Memory, Plan, World};
use crate::policies::policies;
use crate::previous::{Previous, previous};
use crate::rates::{self, Rates};
use crate::roles;
use crate::settle::Standing;

/// What should be.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The machine, with roles.
    pub machine: Machine,
    /// What to persist; `None` where the resources make no partition and none was kept.
    pub kept: Option<Kept>,
    /// The node file, with the devices as they are or would be.
    pub node_file: NodeFile,
    /// The node file where the partition cannot be written down: what was handed out before, less what is refused today.
    /// `None` where there was nothing before.
    pub restricted: Option<NodeFile>,
    /// Our CDI specification; `None` where it has no device.
    pub cdi: Option<cdi::Spec>,
    /// Path → text of the pair descriptions.
    pub pair_files: BTreeMap<String, String>,
    /// Pair descriptions that nobody needs any more.
    pub stale_pair_files: BTreeSet<String>,
    /// Reasons of the devices that are refused.
    pub refused: BTreeSet<crds::reasons::NodeReason>,
    /// Device plugins of others that advertise our GPUs.
    pub others: Others,
    /// Devices whose parts change in a later turn.
    pub changing: BTreeSet<String>,
    /// How GPU memory is made reachable.
    pub gpu_direct: gpu_direct::Choice,
    /// What to change on the host.
    pub plan: Plan,
    /// Memory that the plan was made with.
    pub memory: Memory,
    /// Who uses RDMA and holds up the next costly action; empty until one is about to run.
    pub blockers: Vec<String>,
    /// Everything that was found, worst first.
    pub findings: Vec<Finding>,
}

/// Decides what should be.
#[must_use]
pub fn decide(observed: &Observed, desired: &Desired, now: Timestamp) -> Decision {
    let mut findings = [observed.findings.clone(), desired.findings.clone()].concat();
    let names = own_names(observed, desired);
    let (previous, held) = standing(observed, &names);
    let learned = (learn_rates(observed), OwnNics::learn(observed));
    let machine = prepare(observed, desired, previous.known(), &learned, &mut findings);
    let (state, injection) = (&observed.state, &observed.injection);
    findings.extend(inspect::findings(state, &machine, Some(injection)));
    let paths = machine.paths();
    let offered = offered(&observed.before, previous.known(), now);
    let standing = Standing::new(&previous, &held, &offered);
    let settled = standing.settle(desired, &machine, &paths);
    findings.extend(settled.findings);
    let rails = rails(desired, &mut findings);
    let others = Others::look(
        observed,
        desired.gpu_plugin,
        &machine,
        (&names, &offered),
        now,
    );
    findings.extend(foreign::findings(&others.foreign));
    let gpu_direct = choose(observed, desired, &machine);
    let context = Context {
        machine: &machine,
        paths: &paths,
        injection,
        foreign: &others.foreign,
        kubelet_answered: observed.kubelet.shown().is_some(),
        changing: &settled.changing,
        may_begin: true,
        previous: observed.before.node_file.as_ref(),
        rails: &rails,
        device_plugin: &desired.config.device_plugin,
        gpu_direct: Required::new(&gpu_direct, desired, observed),
    };
    let restricted = previous
        .known()
        .map(|old| others.without_namesakes(restricted(observed, desired, &context, old)));
    let devices = devices_of(&context, settled.partition.as_ref());
    findings.extend(devices.findings.iter().cloned());
    let (plan, memory) = planned(observed, desired, &machine, now, &mut findings);
    findings::sort(&mut findings);
    let in_use = in_use(&held, &devices.untouched);
    Decision {
        cdi: cdi::spec(devices.cdi, observed.before.cdi.as_ref(), &in_use),
        stale_pair_files: stale(observed, &devices.pair_files, &in_use),
        kept: kept(settled.partition, names, others.memory.clone(), learned),
        node_file: node_file(observed, desired, devices.resources),
        pair_files: devices.pair_files,
        refused: devices.refused,
        others,
        changing: settled.changing,
        restricted,
        gpu_direct,
        machine,
        plan,
        memory,
        blockers: Vec::new(),
        findings,
    }
}

/// What holds so far, and what of it containers hold.
fn standing(observed: &Observed, names: &BTreeSet<String>) -> (Previous, Held) {
    let held = Held::of(&observed.kubelet, names);
    let previous = previous(observed, &observed.machine, held.all());
    let held = match previous.known() {
        Some(old) => held.known_to(old, &observed.kubelet),
        None => held,
    };
    (previous, held)
}

fn devices_of(context: &Context<'_>, partition: Option<&Partition>) -> Devices {
    let devices = partition.map(|partition| devices::devices(context, partition));
    devices.unwrap_or_default()
}

fn choose(observed: &Observed, desired: &Desired, machine: &Machine) -> gpu_direct::Choice {
    gpu_direct::choose(&observed.state, &machine.gpus, &desired.config.gpu_direct)
}

fn kept(
    partition: Option<Partition>,
    names: BTreeSet<String>,
    foreign: ForeignMemory,
    (rates, own): (Rates, OwnNics),
) -> Option<Kept> {
    partition.map(|partition| Kept {
        partition,
        names,
        foreign,
        own,
        rates,
    })
}

fn planned(
    observed: &Observed,
    desired: &Desired,
    machine: &Machine,
    now: Timestamp,
    findings: &mut Vec<Finding>,
) -> (Plan, Memory) {
    let state = &observed.state;
    let memory = observed.before.memory.clone().current(desired);
    let memory = memory.booted(&state.boot_id);
    let plan = if desired.restore {
        planner::restore(state, &memory, now)
    } else {
        planner::plan(&World {
            state,
            machine,
            desired,
            memory: &memory,
            now,
        })
    };
    findings.extend(plan.findings.iter().cloned());
    let maintenance = maintenance::accepted(memory.maintenance.as_ref(), desired, &plan);
    let memory = Memory {
        maintenance,
        ..memory.seen(&plan, desired.restore)
    };
    (plan, memory)
}

fn learn_rates(observed: &Observed) -> Rates {
    let before = observed.before.kept.as_ref().map(|kept| &kept.rates);
    rates::learn(&observed.machine, before.unwrap_or(&Rates::new()))
}

/// The machine with what is remembered of it, and with roles.
fn prepare(
    observed: &Observed,
    desired: &Desired,
    previous: Option<&Partition>,
    (rates, own): &(Rates, OwnNics),
    findings: &mut Vec<Finding>,
) -> Machine {
    let mut machine = observed.machine.clone();
    let node_file = observed.before.node_file.as_ref();
    findings.extend(devices::remember_uuids(&mut machine, node_file));
    let kept = roles::kept(previous);
    rates::set(&mut machine, rates);
    roles::assign(&mut machine, &desired.config.nics, &kept, &own.nics);
    findings.extend(own.findings(&machine));
    let paired = kept
        .into_iter()
        .filter(|(_, role)| *role == NicRole::Compute);
    rates::prefer(&mut machine, &paired.map(|(key, _)| key).collect());
    let note = |note: &String| FindingId::MachineNote.about("topology", note);
    findings.extend(machine.notes.iter().take(8).map(note));
    machine
}

fn rails(desired: &Desired, findings: &mut Vec<Finding>) -> BTreeMap<PciAddress, u32> {
    let (rails, wrong) = roles::rails(&desired.config.rails);
    findings.extend(wrong);
    rails
}

/// Every resource name that is or was ours.
fn own_names(observed: &Observed, desired: &Desired) -> BTreeSet<String> {
    let before = &observed.before;
    let asked = policies(&desired.config.device_plugin.resources);
    let kept = before
        .kept
        .iter()
        .flat_map(|kept| kept.names.iter().cloned());
    let advertised = before.node_file.iter().flat_map(|file| &file.resources);
    let advertised = advertised.map(|resource| resource.name.clone());
    asked
        .into_iter()
        .map(|policy| policy.name)
        .chain(kept)
        .chain(advertised)
        .collect()
}

fn restricted(
    observed: &Observed,
    desired: &Desired,
    context: &Context<'_>,
    partition: &Partition,
) -> NodeFile {
    let context = Context {
        may_begin: false,
        ..*context
    };
    let devices = devices::devices(&context, partition);
    node_file(observed, desired, devices.resources)
}

fn node_file(
    observed: &Observed,
    desired: &Desired,
    resources: Vec<topology::node_file::NodeResource>,
) -> NodeFile {
    NodeFile {
        schema: SCHEMA.to_owned(),
        boot_id: observed.state.boot_id.clone(),
        node_uid: desired.node_uid.clone(),
        generation: desired.generation,
        install_hash: desired.install_hash.clone(),
        resources,
    }
}

/// Whether a container may need a CDI device again: it is held, or nobody knows, or what it needs cannot be told now.
fn in_use<'a>(held: &Held, untouched: &'a BTreeSet<String>) -> impl Fn(&str) -> bool + use<'a> {
    let held: Option<BTreeSet<String>> = held.all().map(|ids| {
        // Copies of a NIC share the CDI device of the NIC.
        let nics = ids
            .iter()
            .filter_map(|id| id.rsplit_once('-'))
            .map(|(nic, _)| cdi::name(nic));
        let nics: Vec<String> = nics.collect();
        ids.iter().map(|id| cdi::name(id)).chain(nics).collect()
    });
    move |name| untouched.contains(name) || held.as_ref().is_none_or(|held| held.contains(name))
}

fn stale(
    observed: &Observed,
    wanted: &BTreeMap<String, String>,
    in_use: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let path = |file: &String| format!("{}/{file}", cdi::PAIR_DIR);
    let needed = |file: &str| file.strip_suffix(".json").is_none_or(&in_use);
    let files = observed.before.pair_files.iter();
    files
        .filter(|file| !wanted.contains_key(&path(file)) && !needed(file))
        .map(path)
        .collect()
}

impl Decision {
    /// The node file for the plugin: without the resources that another plugin has.
    #[must_use]
    pub fn for_plugin(&self) -> NodeFile {
        self.others.without_namesakes(self.node_file.clone())
    }

    /// Devices of kind Pair.
    pub fn pairs(&self) -> impl Iterator<Item = &topology::node_file::NodeDevice> {
        let pairs = self
            .node_file
            .resources
            .iter()
            .filter(|r| r.kind == ResourceKind::Pair);
        pairs.flat_map(|resource| &resource.devices)
    }
}
