//! Modules that the admin asked for by name, or that the way to GPU memory needs: nothing else is ever loaded, and nothing
//! is unloaded that was not loaded by us. `modprobe` loads what a module needs; to unload, holders go first, and one that
//! is not ours is named and left alone.

use std::collections::{BTreeMap, BTreeSet};

use host::facts::kernel::Module;
use k8s_openapi::jiff::Timestamp;
use topology::fact::Fact;

use super::{Memory, Plan};
use crate::action::{Blocked, Change};
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::modules::{ModuleName, ModuleState};
use crate::users::known_module;

/// Loads `name`, for which `asker` asks.
pub(super) fn load(
    plan: &mut Plan,
    name: &ModuleName,
    asker: &str,
    state: &HostState,
    memory: &Memory,
    now: Timestamp,
) {
    // What is unloaded now comes back by itself, and a load would hold what openibd unloads.
    let busy = state.job.as_ref().is_some_and(|seen| seen.runs);
    if busy || state.built_in.contains(name) {
        return;
    }
    let modules = match &state.modules {
        Fact::Known(modules) => modules,
        Fact::Unreadable(why) => return unreadable(plan, name, why),
        Fact::Absent => return unreadable(plan, name, "/proc/modules is absent"),
    };
    match modules.get(name) {
        Some(ModuleState::Live) => {}
        Some(moving) => transient(plan, name, asker, *moving, memory, now),
        None if lost(name, state, memory) => contested(plan, name),
        None => absent(plan, name, asker, memory, now),
    }
}

fn unreadable(plan: &mut Plan, name: &ModuleName, why: &str) {
    let message = format!("whether {name} is loaded is unknown: {why}");
    plan.find(FindingId::HostUnreadable, name.as_str(), message);
}

fn absent(plan: &mut Plan, name: &ModuleName, asker: &str, memory: &Memory, now: Timestamp) {
    let precondition = format!("{asker} asks for {name}; /proc/modules does not show it");
    plan.act(Change::LoadModule(name.clone()), precondition, memory, now);
}

/// Another load or unload is on its way; ours would queue behind it in the kernel.
fn transient(
    plan: &mut Plan,
    name: &ModuleName,
    asker: &str,
    moving: ModuleState,
    memory: &Memory,
    now: Timestamp,
) {
    let precondition = format!("{asker} asks for {name}, which is {moving:?}");
    let what = format!("{name} is {moving:?} in /proc/modules");
    let action = plan.act(Change::LoadModule(name.clone()), precondition, memory, now);
    action.blocked.get_or_insert(Blocked::Waits(what));
}

/// We loaded it in this boot and it is gone: somebody unloaded it.
fn lost(name: &ModuleName, state: &HostState, memory: &Memory) -> bool {
    let entry = memory.journal.modules.get(name);
    entry.is_some_and(|entry| entry.asserted && entry.boot_id == state.boot_id)
}

fn contested(plan: &mut Plan, name: &ModuleName) {
    let message = format!(
        "{name} was loaded by this agent in this boot and someone unloaded it; it is not loaded again. Find out who, or take what asks for it out of the cluster's specification, or annotate the GpuRdmaNode with {} to load it once more",
        crds::names::RESET_ATTEMPTS
    );
    plan.find(FindingId::ForeignOwner, name.as_str(), message);
}

/// Plans to unload modules that we loaded, holders first. One that is held by another module, or in use, waits and says so.
pub(super) fn unload(
    plan: &mut Plan,
    ours: &[(ModuleName, Timestamp)],
    state: &HostState,
    memory: &Memory,
    now: Timestamp,
) {
    let listed = state.facts.modules.fact.known().into_iter().flatten();
    let graph: BTreeMap<ModuleName, &Module> = listed
        .filter_map(|module| Some((ModuleName::new(&module.name).ok()?, module)))
        .collect();
    let mut going = BTreeSet::new();
    let mut left: Vec<_> = ours.iter().collect();
    while !left.is_empty() {
        let is_free =
            |(name, _): &&(ModuleName, Timestamp)| held_by(&graph, name, &going).is_empty();
        // Where none is free, the first one says what holds it.
        let next = left.iter().position(is_free).unwrap_or(0);
        let (name, loaded_at) = left.remove(next);
        let waits = in_the_way(&graph, name, &going);
        let precondition = format!("{name} was loaded by this agent at {loaded_at}");
        let change = Change::UnloadModule(name.clone());
        let action = plan.act(change, precondition, memory, now);
        match waits {
            Some(what) => _ = action.blocked.get_or_insert(Blocked::Waits(what)),
            None => _ = going.insert(name.clone()),
        }
    }
}

/// Modules that use `name` and do not go before it.
fn held_by(
    graph: &BTreeMap<ModuleName, &Module>,
    name: &ModuleName,
    going: &BTreeSet<ModuleName>,
) -> Vec<String> {
    let holders = graph
        .get(name)
        .map(|module| module.holders.clone())
        .unwrap_or_default();
    let stays = |holder: &String| !ModuleName::new(holder).is_ok_and(|name| going.contains(&name));
    holders.into_iter().filter(stays).collect()
}

/// What keeps a module from being unloaded: modules that hold it, or references of the kernel and of processes.
fn in_the_way(
    graph: &BTreeMap<ModuleName, &Module>,
    name: &ModuleName,
    going: &BTreeSet<ModuleName>,
) -> Option<String> {
    let holders = held_by(graph, name, going);
    if !holders.is_empty() {
        let named: Vec<_> = holders.iter().map(|holder| shown(holder)).collect();
        return Some(format!("{name} is held by {}", named.join(", ")));
    }
    let module = graph.get(name)?;
    let held = module.holders.len() as u64;
    let references = module.references.known()?.saturating_sub(held);
    (references > 0).then(|| format!("{name} is in use ({references} references)"))
}

/// A holder with what it is and what makes it let go, where that is known.
fn shown(holder: &str) -> String {
    match known_module(holder) {
        Some((what, remedy)) => format!("{holder} ({what}: {remedy})"),
        None => format!("{holder} (rmmod {holder} once nothing uses it)"),
    }
}
