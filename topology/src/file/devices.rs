//! GPUs and NICs of a machine file.

use std::collections::{BTreeMap, BTreeSet};

use super::{FileError, raw, tree};
use crate::fact::Fact;
use crate::machine::{Gpu, LinkLayer, Nic, NicRole, PciFunction, Port, PortState};
use crate::pci::PciAddress;

type Functions = BTreeMap<PciAddress, PciFunction>;

pub(super) fn gpus(raw: &raw::File, functions: &Functions) -> Result<Vec<Gpu>, FileError> {
    reject_duplicates("gpus", raw.gpus.iter().map(|gpu| gpu.index))?;
    let mut gpus: Vec<Gpu> = raw
        .gpus
        .iter()
        .map(|gpu| build_gpu(gpu, functions))
        .collect::<Result<_, _>>()?;
    gpus.sort_by_key(|gpu| gpu.index);
    Ok(gpus)
}

pub(super) fn nics(raw: &raw::File, functions: &Functions) -> Result<Vec<Nic>, FileError> {
    reject_duplicates("nics", raw.nics.iter().map(|nic| nic.index))?;
    let mut nics: Vec<Nic> = raw
        .nics
        .iter()
        .map(|nic| build_nic(nic, functions))
        .collect::<Result<_, _>>()?;
    nics.sort_by_key(|nic| nic.index);
    Ok(nics)
}

fn reject_duplicates(
    list: &'static str,
    indices: impl Iterator<Item = usize>,
) -> Result<(), FileError> {
    let mut met = BTreeSet::new();
    for index in indices {
        if !met.insert(index) {
            return Err(FileError::DuplicateIndex { list, index });
        }
    }
    Ok(())
}

fn build_gpu(raw: &raw::Gpu, functions: &Functions) -> Result<Gpu, FileError> {
    let field = format!("gpus[{}]", raw.index);
    let pci = raw
        .pci
        .as_ref()
        .map(|text| tree::address(text, &format!("{field}.pci")))
        .transpose()?;
    let named = raw
        .product
        .clone()
        .filter(|name| !name.starts_with("unknown") && !name.starts_with("None"));
    Ok(Gpu {
        index: raw.index,
        uuid: Fact::Absent,
        pci,
        minor: Fact::Absent,
        numa: numa(raw.numa, pci, functions, &field)?,
        product: named.map_or_else(not_told, Fact::Known),
        bar1_bytes: not_told(),
        nvlinks: BTreeMap::new(),
    })
}

fn build_nic(raw: &raw::Nic, functions: &Functions) -> Result<Nic, FileError> {
    let field = format!("nics[{}]", raw.index);
    let pci = raw
        .pci
        .as_ref()
        .map(|text| tree::address(text, &format!("{field}.pci")))
        .transpose()?;
    let function = pci.and_then(|pci| functions.get(&pci));
    let ids =
        function.and_then(|function| Some((*function.vendor.known()?, *function.device.known()?)));
    Ok(Nic {
        index: raw.index,
        rdma: raw.rdma.clone(),
        pci,
        numa: numa(raw.numa, pci, functions, &field)?,
        netdevs: Vec::new(),
        ports: vec![port(raw)],
        physfn: None,
        bond: raw.bond,
        uverbs: Fact::Absent,
        ids: ids.map_or_else(not_told, Fact::Known),
        role: NicRole::Compute,
    })
}

/// The device's own NUMA node, or the one that the tree gives its function.
fn numa(
    own: Option<i64>,
    pci: Option<PciAddress>,
    functions: &Functions,
    field: &str,
) -> Result<Fact<u32>, FileError> {
    if own.is_some() {
        return tree::numa(own, &format!("{field}.numa"));
    }
    let function = pci.and_then(|pci| functions.get(&pci));
    Ok(function.map_or_else(not_told, |function| function.numa.clone()))
}

fn port(raw: &raw::Nic) -> Port {
    let link_layer = match raw.link_layer.as_deref() {
        Some("InfiniBand") => Fact::Known(LinkLayer::InfiniBand),
        Some("Ethernet") => Fact::Known(LinkLayer::Ethernet),
        _ => not_told(),
    };
    Port {
        number: raw.port.unwrap_or(1),
        state: raw.port_state.as_deref().map_or_else(not_told, state),
        link_layer,
        rate_mbps: raw.speed_mbps.map_or_else(not_told, Fact::Known),
    }
}

/// `4: ACTIVE` as the kernel writes it, or the name alone.
fn state(text: &str) -> Fact<PortState> {
    let name = text.rsplit(' ').next().unwrap_or(text).to_ascii_uppercase();
    match name.as_str() {
        "DOWN" => Fact::Known(PortState::Down),
        "INIT" => Fact::Known(PortState::Init),
        "ARMED" => Fact::Known(PortState::Armed),
        "ACTIVE" => Fact::Known(PortState::Active),
        "ACTIVE_DEFER" => Fact::Known(PortState::ActiveDefer),
        _ => Fact::Unreadable(format!("the machine file says `{text}`")),
    }
}

/// A file that is silent does not say that there is nothing.
pub(super) fn not_told<T>() -> Fact<T> {
    Fact::Unreadable("the machine file does not tell".to_owned())
}
