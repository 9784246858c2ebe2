//! The network namespace mode of RDMA devices: "written" and "in effect" are two facts. The kernel refuses a change while other
//! namespaces exist, as they do where pods run, so the way is a module option and a reboot. Pure.

use crds::fabric::RdmaNetns;
use host::facts::tuning::namespaces;
use topology::fact::Fact;

use super::super::{Plan, World};
use super::tuning;
use crate::action::{Change, NETNS_FILE, TuningChange};
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::modules::ModuleName;

const COMPONENT: &str = "ib_core";

pub(super) fn set(plan: &mut Plan, world: &World<'_>, mode: RdmaNetns) {
    let wanted = mode == RdmaNetns::Shared;
    let facts = &tuning(world.state).rdma_netns;
    let in_effect = match &facts.shared {
        Fact::Known(shared) => Some(*shared == wanted),
        // Not loaded: what is written counts.
        Fact::Absent => None,
        Fact::Unreadable(why) => return plan.find(FindingId::HostUnreadable, COMPONENT, why),
    };
    let written = match &facts.options {
        Fact::Known(options) => last(options),
        Fact::Absent => None,
        Fact::Unreadable(why) => return plan.find(FindingId::HostUnreadable, "modprobe.d", why),
    };
    match written {
        Some((file, shared)) if file != NETNS_FILE && shared != wanted => {
            foreign(plan, file, shared);
        }
        Some((file, shared)) if shared == wanted => match in_effect {
            Some(true) => _ = plan.met.insert(to(Some(wanted))),
            Some(false) => not_in_effect(plan, world, wanted, file == NETNS_FILE),
            None => {}
        },
        // The kernel's own default is shared.
        None if in_effect == Some(true) || (in_effect.is_none() && wanted) => {
            plan.met.insert(to(Some(wanted)));
        }
        _ if is_built_in(world) => built_in(plan, wanted),
        _ => write(plan, world, wanted, written.map(|(_, shared)| shared)),
    }
}

/// Whether the mode is `shared`; where that is `None`, what options of others and the kernel's own default make it.
pub(super) fn in_effect(state: &HostState, shared: Option<bool>) -> Fact<bool> {
    let facts = &tuning(state).rdma_netns;
    let wanted = match (shared, &facts.options) {
        (Some(shared), _) => shared,
        (None, Fact::Known(options)) => last(options).is_none_or(|(_, shared)| shared),
        (None, Fact::Absent) => true,
        (None, Fact::Unreadable(why)) => return Fact::Unreadable(why.clone()),
    };
    facts.shared.clone().map(|now| now == wanted)
}

/// The option that counts: the last one that names the mode.
fn last(options: &[namespaces::ModuleOption]) -> Option<(&str, bool)> {
    let mode = |option: &namespaces::ModuleOption| {
        let mut words = option.value.split_whitespace();
        let value = words.rfind(|word| word.starts_with("netns_mode="))?;
        Some(matches!(
            &value["netns_mode=".len()..],
            "1" | "y" | "Y" | "on"
        ))
    };
    options
        .iter()
        .rev()
        .find_map(|option| Some((option.file.as_str(), mode(option)?)))
}

fn name(shared: bool) -> &'static str {
    if shared { "shared" } else { "exclusive" }
}

fn to(shared: Option<bool>) -> Change {
    Change::Tuning(TuningChange::RdmaNetns { shared })
}

fn write(plan: &mut Plan, world: &World<'_>, wanted: bool, before: Option<bool>) {
    let seen = match &tuning(world.state).rdma_netns.shared {
        Fact::Known(shared) => format!("the mode is {}", name(*shared)),
        _ => "ib_core is not loaded, and no option is written".to_owned(),
    };
    plan.ensure(world, to(Some(wanted)), to(before), seen);
}

/// What we have written stays planned until the kernel shows it, so that the reboot is granted and judged.
fn not_in_effect(plan: &mut Plan, world: &World<'_>, wanted: bool, ours: bool) {
    let why = match &tuning(world.state).rdma_netns.namespaces {
        Fact::Known(names) if names.is_empty() => String::new(),
        Fact::Known(names) => format!(
            ": the kernel does not change it while {} other network namespaces exist",
            names.len()
        ),
        Fact::Absent => String::new(),
        Fact::Unreadable(why) => {
            format!(": whether other network namespaces exist is unknown: {why}")
        }
    };
    let message = format!(
        "the mode is written and not in effect{why}. Reboot; if it stays, ib_core is loaded by the initial RAM disk: rebuild that"
    );
    plan.find(FindingId::RdmaNetnsNotInEffect, COMPONENT, message);
    if ours && !is_built_in(world) {
        let seen = format!("the mode is {}", name(!wanted));
        plan.act(to(Some(wanted)), seen, world.memory, world.now);
    }
}

fn foreign(plan: &mut Plan, file: &str, shared: bool) {
    let message = format!(
        "{file} sets netns_mode to {}: another owner. Take the option out of that file, or change tuning.rdmaNetns",
        name(shared)
    );
    plan.find(FindingId::ForeignOwner, COMPONENT, message);
}

fn is_built_in(world: &World<'_>) -> bool {
    ModuleName::new(COMPONENT).is_ok_and(|name| world.state.built_in.contains(&name))
}

fn built_in(plan: &mut Plan, wanted: bool) {
    let message = format!(
        "ib_core is part of the kernel, which reads no module options: put ib_core.netns_mode={} on the kernel's command line",
        u8::from(wanted)
    );
    plan.find(FindingId::RdmaNetnsNotInEffect, COMPONENT, message);
}
