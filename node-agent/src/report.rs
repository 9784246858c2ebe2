//! Builds the status of a `GpuRdmaNode`. Pure. At most 16 KiB on the largest machine and free of volatile values, so that
//! a node that does not change is not written.

use crds::GpuRdmaNodeStatus;
use crds::cluster::Mode;
use crds::node::{
    Finding, MachineSummary, MaintenanceStatus, NicStatus, PairStatus, PlanStatus, Severity,
};
use k8s_openapi::jiff::Timestamp;
use topology::distance::Distance;
use topology::machine::{LinkLayer, Machine, Nic, NicRole};
use topology::node_file::NodeDevice;
use topology::pci::PciAddress;

use crate::conditions::{Judge, with_times};
use crate::decide::Decision;
use crate::desired::Desired;
use crate::findings::shorten;
use crate::observed::Observed;
use crate::roles;

/// Largest status in bytes of JSON; the promise is 16 KiB.
const LIMIT: usize = 15 * 1024;
/// Most findings in a status: the worst ones.
const FINDINGS: usize = 24;
/// Most pairs in a status.
const PAIRS: usize = 32;
/// Most NICs shown of a pair.
const NICS: usize = 16;
/// Most NICs in a status.
const NIC_ROWS: usize = 64;
/// Most interfaces shown of a NIC.
const NETDEVS: usize = 4;
/// Most addresses of others in a status.
const ADDRESSES: usize = 32;
/// Most other advertisers in a status.
const OTHERS: usize = 16;
/// Longest reason of a pair.
const REASON: usize = 96;

/// The status to publish. `before` is what was published last, for the times of the conditions.
pub fn status(
    observed: &Observed,
    desired: &Desired,
    decision: &Decision,
    before: Option<&GpuRdmaNodeStatus>,
    now: Timestamp,
) -> Result<GpuRdmaNodeStatus, serde_json::Error> {
    let judge = Judge {
        observed,
        desired,
        decision,
    };
    let (drafts, phase) = judge.all();
    let conditions = before
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let mut status = GpuRdmaNodeStatus {
        observed_generation: Some(desired.generation),
        boot_id: Some(observed.state.boot_id.clone()),
        install_hash: Some(desired.install_hash.clone()),
        agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        phase,
        summary: summary(observed, decision),
        pairs: pairs(decision),
        nics: nics(desired, decision),
        addresses_in_use: addresses_in_use(decision),
        other_advertisers: decision
            .others
            .advertisers
            .iter()
            .take(OTHERS)
            .cloned()
            .collect(),
        findings: Vec::new(),
        plan: plan(desired, decision)?,
        maintenance: maintenance(decision),
        conditions: with_times(drafts, conditions, desired.generation, now),
    };
    // A node that this is not about has nothing wrong with it.
    let found = if judge.applicable() {
        decision.findings.as_slice()
    } else {
        &[]
    };
    fit(&mut status, found)?;
    Ok(status)
}

fn maintenance(decision: &Decision) -> Option<MaintenanceStatus> {
    let accepted = decision.memory.maintenance.as_ref()?;
    Some(accepted.status(
        &decision.plan,
        &decision.memory.attempts,
        &decision.blockers,
    ))
}

/// A status that is kept for want of a newer one, with the finding that says why.
#[must_use]
pub fn with_finding(status: &GpuRdmaNodeStatus, finding: Finding) -> GpuRdmaNodeStatus {
    let mut status = status.clone();
    let is_other = |old: &Finding| (&old.id, &old.component) != (&finding.id, &finding.component);
    status.findings.retain(is_other);
    // Cut before it is added: nothing is more important, and the status keeps its bounds.
    status.findings.truncate(FINDINGS);
    status.findings.insert(0, finding);
    status
}

/// Shows as many findings as fit, then drops the actions' messages. The actions themselves stay: the plan's hash is about
/// them.
fn fit(status: &mut GpuRdmaNodeStatus, all: &[Finding]) -> Result<(), serde_json::Error> {
    for shown in (0..=FINDINGS.min(all.len())).rev() {
        status.findings = findings(all, shown);
        if serde_json::to_vec(status)?.len() <= LIMIT {
            return Ok(());
        }
    }
    for action in status.plan.iter_mut().flat_map(|plan| &mut plan.actions) {
        action.message.clear();
    }
    Ok(())
}

fn summary(observed: &Observed, decision: &Decision) -> MachineSummary {
    let machine = &decision.machine;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    MachineSummary {
        gpus: count(machine.gpus.len()),
        nics: count(machine.nics.len()),
        admitted_pairs: count(decision.pairs().filter(|pair| pair.admitted).count()),
        gpu_product: machine
            .gpus
            .iter()
            .find_map(|gpu| gpu.product.known().cloned()),
        gpu_driver: observed.platform.gpu_driver.clone(),
        os: observed.platform.os.clone(),
        kernel: observed.platform.kernel.clone(),
        link_layer: link_layer(machine),
    }
}

fn link_layer(machine: &Machine) -> Option<String> {
    let compute = machine
        .nics
        .iter()
        .filter(|nic| nic.role == NicRole::Compute);
    let mut layers: Vec<LinkLayer> = compute
        .flat_map(|nic| &nic.ports)
        .filter_map(|port| port.link_layer.known().copied())
        .collect();
    layers.sort();
    layers.dedup();
    let name = match layers.as_slice() {
        [] => return None,
        [LinkLayer::InfiniBand] => "InfiniBand",
        [LinkLayer::Ethernet] => "Ethernet",
        _ => "Mixed",
    };
    Some(name.to_owned())
}

/// In the order in which a person counts GPUs: GPU2 before GPU10.
fn pairs(decision: &Decision) -> Vec<PairStatus> {
    let index = |device: &NodeDevice| {
        let name = device.gpu.as_ref().map(|gpu| gpu.name.as_str());
        let number = name.and_then(|name| name.strip_prefix("GPU")?.parse::<usize>().ok());
        (number.is_none(), number, device.id.clone())
    };
    let mut devices: Vec<&NodeDevice> = decision.pairs().collect();
    devices.sort_by_key(|device| index(device));
    devices.into_iter().take(PAIRS).map(pair).collect()
}

fn pair(device: &NodeDevice) -> PairStatus {
    let distance = device
        .nics
        .first()
        .and_then(|nic| nic.distance)
        .unwrap_or(Distance::Unknown);
    PairStatus {
        gpu: device
            .gpu
            .as_ref()
            .map_or_else(|| device.id.clone(), |gpu| gpu.name.clone()),
        nics: device
            .nics
            .iter()
            .take(NICS)
            .map(|nic| nic.rdma.clone())
            .collect(),
        distance: format!("{distance:?}").to_uppercase(),
        shared: device.shared,
        admitted: device.admitted,
        reason: if device.admitted {
            String::new()
        } else {
            shorten(&device.reason, REASON)
        },
    }
}

/// Without virtual functions: they share the port, and so the rail, of the device that they belong to.
fn nics(desired: &Desired, decision: &Decision) -> Vec<NicStatus> {
    let (rails, _) = roles::rails(&desired.config.rails);
    let own = |nic: &&Nic| nic.physfn.is_none();
    let mut nics: Vec<_> = decision.machine.nics.iter().filter(own).collect();
    nics.sort_by_key(|nic| nic.pci);
    let shown = nics.into_iter().filter_map(|nic| {
        let pci = nic.pci?;
        Some(self::nic(nic, pci, rails.get(&pci).copied()))
    });
    shown.take(NIC_ROWS).collect()
}

fn nic(nic: &Nic, pci: PciAddress, rail: Option<u32>) -> NicStatus {
    let product = nic.ids.known();
    NicStatus {
        pci: pci.to_string(),
        rdma: nic.rdma.clone(),
        product: product.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}")),
        netdevs: nic.netdevs.iter().take(NETDEVS).cloned().collect(),
        role: roles::shown(nic.role),
        link_layers: roles::link_layers(nic),
        rate: roles::rate(nic),
        rail,
    }
}

fn addresses_in_use(decision: &Decision) -> Vec<String> {
    let addresses = decision.plan.in_use.iter().take(ADDRESSES);
    addresses.map(ToString::to_string).collect()
}

/// The worst of them, and how many more there are.
fn findings(all: &[Finding], shown: usize) -> Vec<Finding> {
    let mut worst: Vec<Finding> = all.iter().take(shown).cloned().collect();
    if all.len() > shown {
        let more = all.len() - shown;
        worst.push(Finding {
            id: "MORE_FINDINGS".to_owned(),
            severity: Severity::Info,
            component: "node-agent".to_owned(),
            message: format!("{more} more; see them with `node-agent plan`"),
        });
    }
    worst
}

/// Observe plans nothing.
fn plan(desired: &Desired, decision: &Decision) -> Result<Option<PlanStatus>, serde_json::Error> {
    if desired.mode == Mode::Observe {
        return Ok(None);
    }
    decision.plan.status(&desired.install_hash)
}
