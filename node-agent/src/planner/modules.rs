//! Modules that the admin asked for by name. Nothing else is ever loaded.

use k8s_openapi::jiff::Timestamp;
use topology::fact::Fact;

use super::{Memory, Plan};
use crate::action::{Blocked, Change};
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::modules::{ModuleName, ModuleState};

pub(super) fn load(
    plan: &mut Plan,
    name: &ModuleName,
    state: &HostState,
    memory: &Memory,
    now: Timestamp,
) {
    if state.built_in.contains(name) {
        return;
    }
    let modules = match &state.modules {
        Fact::Known(modules) => modules,
        Fact::Unreadable(why) => return unreadable(plan, name, why),
        Fact::Absent => return unreadable(plan, name, "/proc/modules is absent"),
    };
    match modules.get(name) {
        Some(ModuleState::Live) => {}
        Some(moving) => transient(plan, name, *moving, memory, now),
        None if lost(name, state, memory) => contested(plan, name),
        None => absent(plan, name, memory, now),
    }
}

fn unreadable(plan: &mut Plan, name: &ModuleName, why: &str) {
    let message = format!("whether {name} is loaded is unknown: {why}");
    plan.find(FindingId::HostUnreadable, name.as_str(), message);
}

fn absent(plan: &mut Plan, name: &ModuleName, memory: &Memory, now: Timestamp) {
    let precondition = format!("driver.modules asks for {name}; /proc/modules does not show it");
    plan.act(Change::LoadModule(name.clone()), precondition, memory, now);
}

/// Another load or unload is on its way; ours would queue behind it in the kernel.
fn transient(
    plan: &mut Plan,
    name: &ModuleName,
    moving: ModuleState,
    memory: &Memory,
    now: Timestamp,
) {
    absent(plan, name, memory, now);
    if let Some(action) = plan.actions.last_mut() {
        action.precondition = format!("driver.modules asks for {name}, which is {moving:?}");
        let what = format!("{name} is {moving:?} in /proc/modules");
        action.blocked.get_or_insert(Blocked::Waits(what));
    }
}

/// We loaded it in this boot and it is gone: somebody unloaded it.
fn lost(name: &ModuleName, state: &HostState, memory: &Memory) -> bool {
    let entry = memory.journal.modules.get(name);
    entry.is_some_and(|entry| entry.asserted && entry.boot_id == state.boot_id)
}

fn contested(plan: &mut Plan, name: &ModuleName) {
    let message = format!(
        "{name} was loaded by this agent in this boot and someone unloaded it; it is not loaded again. Find out who, or take {name} out of driver.modules, or annotate the GpuRdmaNode with {} to load it once more",
        crds::names::RESET_ATTEMPTS
    );
    plan.find(FindingId::ForeignOwner, name.as_str(), message);
}
