//! The way between GPU and NIC: links that trained badly, ports that redirect, an IOMMU that translates.
//!
//! An idle GPU lowers its link's speed to save power and raises it under load, so only its lanes are judged. A NIC does not.

use crds::node::Finding;
use host::facts::pci_link::PciLink;
use topology::fact::Fact;
use topology::machine::{Machine, Nic};
use topology::pci::PciAddress;

use super::compute;
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::planner::needless_redirects;

pub(super) fn findings(state: &HostState, machine: &Machine) -> Vec<Finding> {
    // A guest's links and IOMMU are what its host makes of them.
    if !matches!(state.guest(), Fact::Known(false) | Fact::Absent) {
        return Vec::new();
    }
    let mut found: Vec<Finding> = degraded(state, machine).collect();
    found.extend(redirects(state, machine));
    found.extend(translated(state, machine));
    found
}

fn degraded(state: &HostState, machine: &Machine) -> impl Iterator<Item = Finding> {
    let link = |pci: Option<PciAddress>| state.facts.links.get(&pci?);
    // A virtual function has no link of its own.
    let is_physical = |nic: &&Nic| nic.physfn.is_none();
    let nics = machine.nics.iter().filter(is_physical);
    let of_nics = nics.filter_map(move |nic| {
        let link = link(nic.pci)?;
        Some((nic.name(), narrow(link).or_else(|| slow(link))?))
    });
    let of_gpus = machine
        .gpus
        .iter()
        .filter_map(move |gpu| Some((gpu.name(), narrow(link(gpu.pci)?)?)));
    let about = |(name, seen): (String, String)| {
        let message = format!(
            "its PCIe link runs {seen}. Reseat the card or its riser, then look at what the slot has (LnkCap of the port above, `lspci -vv`) and at the firmware's bifurcation"
        );
        FindingId::PcieLinkDegraded.about(name, message)
    };
    of_gpus.chain(of_nics).map(about)
}

fn narrow(link: &PciLink) -> Option<String> {
    let (now, most) = (*link.current_width.known()?, *link.max_width.known()?);
    (0 < now && now < most).then(|| format!("with {now} of {most} lanes"))
}

fn slow(link: &PciLink) -> Option<String> {
    let (now, most) = (link.current_speed.known()?, link.max_speed.known()?);
    (tenths(now)? < tenths(most)?).then(|| format!("at {now} of {most}"))
}

/// `32.0 GT/s PCIe` in tenths.
fn tenths(speed: &str) -> Option<u32> {
    let number = speed.split_whitespace().next()?;
    let (whole, tenth) = number.split_once('.')?;
    Some(whole.parse::<u32>().ok()? * 10 + tenth.parse::<u32>().ok()?)
}

fn redirects(state: &HostState, machine: &Machine) -> impl Iterator<Item = Finding> {
    let asked = "traffic between a GPU and its NIC goes up to the root complex and back (ACS redirection): GPU-direct RDMA has half of its bandwidth, or fails. Set tuning.acs: Disable";
    needless_redirects(state, machine)
        .into_iter()
        .map(move |port| FindingId::AcsRedirects.about(port.to_string(), asked))
}

fn translated(state: &HostState, machine: &Machine) -> impl Iterator<Item = Finding> {
    let has_gpus = !machine.gpus.is_empty();
    compute(machine)
        .filter(move |_| has_gpus)
        .filter_map(|nic| {
            let kind = state.facts.links.get(&nic.pci?)?.iommu_type.known()?;
            let message = format!(
                "the IOMMU translates its addresses ({kind}): GPU-direct RDMA hangs or is slow. Boot with iommu=pt on the kernel's command line (iommu.passthrough=1 on Arm)"
            );
            (kind != "identity").then(|| FindingId::IommuTranslating.about(nic.name(), message))
        })
}
