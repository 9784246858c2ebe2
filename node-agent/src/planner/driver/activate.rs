//! Installed modules in the place of the loaded ones: by openibd where that can be, by a reboot where not.
//!
//! openibd unloads the whole RDMA stack. That must not take the node's own network away, fails halfway where a stranger
//! holds a module, and loses nvidia-peermem for good where the GPU driver was not rebuilt: each is looked at first.

use std::collections::BTreeSet;

use topology::fact::Fact;
use topology::machine::NicRole;

use super::super::{Plan, World, under_way};
use super::{PEERMEM, not_in_effect};
use crate::action::{Activation, Blocked, Change, DriverChange};
use crate::findings::FindingId;
use crate::gpu_direct::Peermem;
use crate::host_state::HostState;
use crate::modules::ModuleName;

/// Modules that openibd unloads itself (`UNLOAD_MODULES` of `openibd`), and nvidia-peermem, which the agent unloads first.
const STACK: &[&str] = &[
    "ib_cm",
    "ib_core",
    "ib_ipoib",
    "ib_iser",
    "ib_srp",
    "ib_ucm",
    "ib_umad",
    "ib_uverbs",
    "iw_cm",
    "mlx4_core",
    "mlx4_en",
    "mlx4_ib",
    "mlx5_core",
    "mlx5_ib",
    "mlx5_vdpa",
    "mlx_compat",
    "mlxdevm",
    "mlxfw",
    "nvidia_peermem",
    "rdma_cm",
    "rdma_ucm",
];

/// A restart that was begun is planned until it is settled: what was unloaded for it must come back.
pub(super) fn plan(plan: &mut Plan, world: &World<'_>) {
    let stale = not_in_effect(world.state);
    let change = Change::Driver(DriverChange::ActivateDriver {
        way: way(world),
        version: version(world.state),
    });
    let job = world.state.job.as_ref().filter(|seen| seen.is_of(&change));
    let seen = match (stale.is_empty(), job) {
        (true, None) => {
            plan.met.insert(change);
            return;
        }
        (true, Some(_)) => "openibd was restarted by this agent".to_owned(),
        (false, _) => format!("the files of {} are not what is loaded", stale.join(", ")),
    };
    let waits = match job {
        Some(seen) if seen.runs => Some(format!("openibd restarts since {}", seen.job.at.0)),
        Some(_) => None,
        None => waits(world, plan),
    };
    let action = match under_way(world.state, world.memory, &change) {
        Some(_) => plan.follow(change, seen, world.memory, None),
        None => plan.act(change, seen, world.memory, world.now),
    };
    if let Some(waits) = waits {
        action.blocked.get_or_insert(Blocked::Waits(waits));
    }
}

fn way(world: &World<'_>) -> Activation {
    let own_network = world
        .machine
        .nics
        .iter()
        .any(|nic| nic.role == NicRole::Management);
    if world.state.facts.openibd.program && !own_network {
        Activation::Openibd
    } else {
        Activation::Reboot
    }
}

/// Of the files, whatever is loaded: the change keeps its name while it is made.
fn version(state: &HostState) -> String {
    let files = state.facts.install.modules.fact.known();
    let of = |name: &&str| {
        let info = files?.get(*name)?.info.known()?;
        let version = info.version.known().or(info.source_version.known());
        version.cloned()
    };
    let names = ["mlx_compat", "mlx5_core", "ib_core"];
    let found = names.iter().find_map(of);
    found.unwrap_or_else(|| "as installed".to_owned())
}

fn waits(world: &World<'_>, plan: &Plan) -> Option<String> {
    let not_ready = FindingId::KernelUpgradeNotReady.row().0;
    let next = plan.findings.iter().find(|finding| finding.id == not_ready);
    match way(world) {
        Activation::Reboot => next.map(|finding| finding.message.clone()),
        Activation::Openibd => strangers(world.state).or_else(|| peermem(world.state)),
    }
}

/// Modules outside of the stack that hold one of it: openibd would stop halfway.
fn strangers(state: &HostState) -> Option<String> {
    let Fact::Known(modules) = &state.facts.modules.fact else {
        return Some("which modules hold the RDMA stack is unknown".to_owned());
    };
    let stack: BTreeSet<&str> = STACK.iter().copied().collect();
    let held: BTreeSet<String> = modules
        .iter()
        .filter(|module| stack.contains(module.name.as_str()))
        .flat_map(|module| {
            let strangers = module
                .holders
                .iter()
                .filter(|holder| !stack.contains(holder.as_str()));
            strangers.map(|holder| format!("{holder} holds {}", module.name))
        })
        .collect();
    let held: Vec<String> = held.into_iter().collect();
    (!held.is_empty()).then(|| {
        format!(
            "{}: stop what uses it and unload it, or reboot the node",
            held.join(", ")
        )
    })
}

/// nvidia-peermem must be unloaded for the restart, and must be able to come back.
fn peermem(state: &HostState) -> Option<String> {
    let name = ModuleName::new(PEERMEM).ok()?;
    if state.has_module(&name) == Some(false) {
        return None;
    }
    if state.facts.install.gpu.owned_by_operator() {
        return Some("nvidia_peermem is loaded and gpu-operator owns it: it must unload it (driver.rdma.enabled=false, or its upgrade) before openibd restarts".to_owned());
    }
    let fits = crate::gpu_direct::files_fit(state);
    (fits != Ok(Peermem::Loadable)).then(|| "nvidia_peermem is loaded and its file does not fit the new RDMA driver: rebuild the GPU driver's modules first".to_owned())
}
