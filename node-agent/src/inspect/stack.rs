//! The RDMA stack as pods meet it: device nodes, network namespaces, what libraries look for.

use crds::node::Finding;
use topology::fact::Fact;
use topology::machine::Machine;

use super::compute;
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::injection::{Injection, RDMA_CM};
use crate::modules::{ModuleName, ModuleState};

pub(super) fn findings(
    state: &HostState,
    machine: &Machine,
    injection: Option<&Injection>,
) -> Vec<Finding> {
    let cm = injection.and_then(|injection| without_rdma_cm(state, machine, injection));
    let all = [cm, exclusive(state, machine), unseen_peermem(state)];
    all.into_iter().flatten().collect()
}

/// Pairs are handed out without it: the data path does not need it.
fn without_rdma_cm(state: &HostState, machine: &Machine, injection: &Injection) -> Option<Finding> {
    let usable = compute(machine).any(|nic| injection.nic(nic).is_ok());
    if !usable || injection.nodes.contains(RDMA_CM) {
        return None;
    }
    let module = ModuleName::new("rdma_ucm").ok()?;
    let remedy = match state.has_module(&module) {
        Some(true) => "rdma_ucm is loaded, so look at udev and /dev (`udevadm trigger`)",
        Some(false) | None => "Set driver.modules: [rdma_ucm], or `modprobe rdma_ucm`",
    };
    let message = format!(
        "{RDMA_CM} is not there: pods get their pairs without it, and what connects by RDMA-CM fails there. {remedy}"
    );
    Some(FindingId::RdmaUcmNotLoaded.about("rdma_ucm", message))
}

/// The kernel refuses to open a device of another namespace (`ib_uverbs_open`).
fn exclusive(state: &HostState, machine: &Machine) -> Option<Finding> {
    let shared = &state.facts.tuning.rdma_netns.shared;
    if *shared != Fact::Known(false) || compute(machine).next().is_none() {
        return None;
    }
    let message = "RDMA devices belong to one network namespace each (netns_mode is exclusive): a pod with a network of its own gets a pair and cannot open it (EPERM). Set tuning.rdmaNetns: Shared (a module option and a reboot), or run the jobs with hostNetwork: true";
    Some(FindingId::RdmaNetnsModeConflict.about("ib_core", message))
}

/// NCCL before 2.23 looks for `nv_mem` below `memory_peers` only.
fn unseen_peermem(state: &HostState) -> Option<Finding> {
    let module = ModuleName::new("nvidia_peermem").ok()?;
    if state.modules.known()?.get(&module) != Some(&ModuleState::Live) {
        return None;
    }
    let clients = match &state.facts.peer_memory_clients.fact {
        Fact::Known(clients) => clients.as_slice(),
        Fact::Absent => &[],
        Fact::Unreadable(_) => return None,
    };
    let message = "nvidia-peermem is loaded and works, and NCCL before 2.23 does not see it here: it looks for nv_mem in /sys/kernel/mm/memory_peers only. Use NCCL 2.23 or newer in the pods";
    let seen = clients.iter().any(|client| client.starts_with("nv_mem"));
    (!seen).then(|| FindingId::PeermemInvisible.about("nvidia_peermem", message))
}
