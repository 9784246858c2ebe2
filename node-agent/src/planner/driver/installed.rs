//! What is wrong with what is installed, whatever is asked: findings only.

use host::facts::install::Install;
use host::facts::install::dkms::DkmsModule;
use topology::fact::Fact;

use super::super::Plan;
use super::not_in_effect;
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::modules::ModuleName;

/// Modules that DKMS builds for RDMA and GPUs.
const BUILT: &[&str] = &[
    "iser",
    "isert",
    "mlnx-nvme",
    "mlnx-ofed-kernel",
    "nvidia",
    "nvidia-fs",
    "nvidia-peermem",
    "srp",
];

pub(super) fn findings(plan: &mut Plan, state: &HostState) {
    let install = &state.facts.install;
    let running = state.facts.kernel_release.fact.known().map(String::as_str);
    effect(plan, state);
    failed_builds(plan, install);
    if let Some(running) = running {
        next_kernel(plan, install, running);
        default_link(plan, install, running);
    }
    blacklist(plan, state);
}

/// "Installed" and "loaded" are two facts.
fn effect(plan: &mut Plan, state: &HostState) {
    let modules = not_in_effect(state);
    if modules.is_empty() {
        return;
    }
    let message = format!(
        "the files of {} are not what is loaded: a driver was installed and is not in effect. Restart openibd (it reloads the RDMA stack) or reboot, after the GPU driver's modules were rebuilt for it",
        modules.join(", ")
    );
    plan.find(FindingId::DriverNotInEffect, "rdma-driver", message);
}

fn built(install: &Install) -> impl Iterator<Item = &DkmsModule> {
    let modules = install.dkms.fact.known().into_iter().flatten();
    modules.filter(|module| BUILT.contains(&module.name.as_str()))
}

/// A build that failed says nothing about one of the same module that stands.
fn failed_builds(plan: &mut Plan, install: &Install) {
    for module in built(install) {
        let Some(kernel) = module.failed.known() else {
            continue;
        };
        if module.builds.iter().any(|build| &build.kernel == kernel) {
            continue;
        }
        let (name, version) = (&module.name, &module.version);
        let message = format!(
            "DKMS did not build {name} {version} for kernel {kernel}; see /var/lib/dkms/{name}/{version}/build/make.log, install the kernel's headers, or use a driver version that supports the kernel, before the node boots it"
        );
        plan.find(FindingId::OfedDkmsBuildFailed, name, message);
    }
}

/// Whatever DKMS has for the kernel that runs it must have for the one that boots next, OFED before the GPU driver.
fn next_kernel(plan: &mut Plan, install: &Install, running: &str) {
    let Fact::Known(next) = &install.boot.next_kernel else {
        return;
    };
    if next == running {
        return;
    }
    let has = |module: &DkmsModule, kernel: &str| {
        module
            .builds
            .iter()
            .any(|build| build.kernel == kernel && build.installed)
    };
    // A name may stand there in two versions: one of them is enough.
    let names = |kernel: &str| -> Vec<&str> {
        let with = built(install).filter(|module| has(module, kernel));
        let mut names: Vec<&str> = with.map(|module| module.name.as_str()).collect();
        names.dedup();
        names
    };
    let ready = names(next);
    let missing: Vec<&str> = names(running)
        .into_iter()
        .filter(|name| !ready.contains(name))
        .collect();
    if !missing.is_empty() {
        let message = format!(
            "the node boots kernel {next} next, and DKMS has {} for {running} only: install the headers of {next} and run `dkms autoinstall -k {next}`, OFED before the GPU driver",
            missing.join(", ")
        );
        return plan.find(FindingId::KernelUpgradeNotReady, next, message);
    }
    order(plan, install, next);
}

/// The GPU driver's peer memory takes its symbols from the OFED that is there when it is built.
fn order(plan: &mut Plan, install: &Install, next: &str) {
    let built_at = |name: &str| {
        let builds = built(install).filter(|module| module.name == name);
        let mut builds = builds.flat_map(|module| &module.builds);
        builds
            .find(|build| build.kernel == next && build.installed)?
            .built_at
            .known()
            .copied()
    };
    if let (Some(ofed), Some(gpu)) = (built_at("mlnx-ofed-kernel"), built_at("nvidia"))
        && gpu < ofed
    {
        let message = format!(
            "for kernel {next} the GPU driver's modules were built before OFED's, so nvidia-peermem will not load there: run `dkms install --force` for nvidia once more"
        );
        plan.find(FindingId::KernelUpgradeNotReady, next, message);
    }
}

fn default_link(plan: &mut Plan, install: &Install, running: &str) {
    let Fact::Known(target) = &install.ofed_default.fact else {
        return;
    };
    // Where the link names no kernel, it says nothing.
    let names_kernel = target
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_digit());
    if names_kernel && target != running {
        let message = format!(
            "{} leads to {target} and the node runs {running}: what is built against OFED gets another kernel's symbols. Point the link at {running}",
            install.ofed_default.source
        );
        plan.find(FindingId::OfedDefaultLinkStale, "ofa_kernel", message);
    }
}

/// Left by a driver container that died, the file keeps the node without RDMA after the next boot.
fn blacklist(plan: &mut Plan, state: &HostState) {
    let file = &state.facts.install.blacklisted;
    let absent = |name: &&String| {
        ModuleName::new(name).is_ok_and(|name| state.has_module(&name) == Some(false))
    };
    let names = file.fact.known().into_iter().flatten();
    let absent: Vec<&str> = names.filter(absent).map(String::as_str).collect();
    if !absent.is_empty() {
        let message = format!(
            "{} keeps {} from loading by themselves, and they are not loaded. Where no driver container runs on this node, remove the file and load mlx5_ib",
            file.source,
            absent.join(", ")
        );
        plan.find(FindingId::RdmaModulesBlacklisted, "modprobe.d", message);
    }
}
