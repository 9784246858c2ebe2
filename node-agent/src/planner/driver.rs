//! What is asked of the RDMA driver and of what makes GPU memory reachable for it. [`installed`] says what is wrong with
//! what is there, [`packages`] and [`container`] follow `driver.source`, [`activate`] brings installed modules into
//! effect.

mod activate;
mod container;
mod installed;
mod packages;

use crds::cluster::{DriverSource, GpuDirectMode};

use super::{Plan, World, modules};
use crate::action::Explain;
use crate::compat::{NicSeen, Node, Verdict, Weight};
use crate::findings::FindingId;
use crate::gpu_direct::{Reach, choose};
use crate::host_state::HostState;
use crate::modules::ModuleName;

/// What makes GPU memory reachable where DMA-BUF does not.
const PEERMEM: &str = "nvidia_peermem";

pub(super) fn plan(plan: &mut Plan, world: &World<'_>) {
    installed::findings(plan, world.state);
    match world.desired.config.driver.source {
        DriverSource::Existing => {}
        DriverSource::Container => container::plan(plan, world),
        DriverSource::HostPackages => packages::plan(plan, world),
    }
    packages::forget_repositories(plan, world);
    gpu_direct(plan, world);
}

fn gpu_direct(plan: &mut Plan, world: &World<'_>) {
    let asked = &world.desired.config.gpu_direct;
    let choice = choose(world.state, &world.machine.gpus, asked);
    plan.findings.extend(choice.findings);
    if asked.mode == GpuDirectMode::Keep || choice.reach != Reach::AfterLoad {
        return;
    }
    // Who names the module in driver.modules has asked for it already.
    let Ok(name) = ModuleName::new(PEERMEM) else {
        return;
    };
    if !world.desired.modules.contains(&name) {
        modules::load(
            plan,
            &name,
            "gpuDirect.mode",
            world.state,
            world.memory,
            world.now,
        );
    }
    signatures(plan);
}

/// What the kernel says of a module that nobody it trusts has signed (`EKEYREJECTED`, `ENOKEY`).
const REFUSED: &[&str] = &["Key was rejected by service", "Required key not available"];

fn signatures(plan: &mut Plan) {
    let refused = |error: &String| REFUSED.iter().any(|text| error.contains(text));
    let modules: Vec<String> = plan
        .actions
        .iter()
        .filter(|action| action.last_error.as_ref().is_some_and(refused))
        .map(|action| action.change.target())
        .collect();
    for module in modules {
        let message = format!(
            "the kernel refuses the signature of {module}: with Secure Boot, enrol the key that DKMS signs with (`mokutil --import /var/lib/dkms/mok.pub`, then reboot), or use signed precompiled drivers"
        );
        plan.find(FindingId::ModuleSignatureRejected, module, message);
    }
}

/// What the compatibility table is asked about.
fn node<'a>(world: &World<'a>) -> Node<'a> {
    let (facts, machine) = (&world.state.facts, world.machine);
    let nic = |nic: &topology::machine::Nic| {
        let name = nic.name();
        // A virtual function's id does not tell the generation.
        let device = match nic.physfn {
            Some(pf) => machine
                .functions
                .get(&pf)
                .and_then(|f| f.device.known().copied()),
            None => nic.ids.known().map(|(_, device)| *device),
        };
        let firmware = facts
            .rdma
            .get(&name)
            .and_then(|seen| seen.firmware.known().cloned());
        NicSeen {
            name,
            device,
            firmware,
        }
    };
    Node {
        os: facts.os.fact.known(),
        nics: machine.nics.iter().map(nic).collect(),
        gpu_driver: facts.gpu_driver.fact.known(),
        secure_boot: facts.install.boot.secure_boot.fact.known().copied(),
        installed: facts.install.packages.installed.fact.known(),
    }
}

/// Says what the table says; `true` where a row refuses.
fn tell(plan: &mut Plan, component: &str, verdicts: &[Verdict]) -> bool {
    for verdict in verdicts {
        let id = match verdict.weight {
            Weight::Refused => FindingId::CompatibilityRefused,
            Weight::Doubtful => FindingId::CompatibilityDoubtful,
            Weight::Unlisted => FindingId::CompatibilityUnlisted,
        };
        plan.find(id, component, verdict.text());
    }
    verdicts
        .iter()
        .any(|verdict| verdict.weight == Weight::Refused)
}

/// Modules of the RDMA stack whose file is not what is loaded.
fn not_in_effect(state: &HostState) -> Vec<&str> {
    use topology::fact::Fact;
    let files = state.facts.install.modules.fact.known();
    files
        .into_iter()
        .flatten()
        .filter(|(name, file)| is_rdma(name) && file.is_loaded == Fact::Known(false))
        .map(|(name, _)| name.as_str())
        .collect()
}

fn is_rdma(name: &str) -> bool {
    ["ib_", "mlx", "rdma_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests;
