//! The machine that an export of hwloc describes (`lstopo out.xml`; hwloc's `hwloc2.dtd`, versions 1 to 3).
//!
//! Pure. An export has the PCI functions that hwloc keeps, their bridges and host bridges, and the NUMA node of the part of
//! the machine that a host bridge hangs on. It does not tell a bridge's port type, so the place in the chain does, nor a
//! port's state, link layer and rate, nor which function is virtual.

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::{Document, Node};

use crate::fact::Fact;
use crate::machine::{Gpu, Machine, Nic, NicRole, PciFunction, PciKind, PciParent, TreeFile};
use crate::nccl_xml::XmlError;
use crate::pci::PciAddress;

/// Deeper than any machine; anything below is cut off.
const DEEPEST: usize = 256;
/// `HWLOC_OBJ_OSDEV_OPENFABRICS`: a number until version 2, a bit since version 3, where a device can be of several types.
const OPENFABRICS: u32 = 3;
const OPENFABRICS_BIT: u32 = 1 << 5;

/// Describes the machine of an export; functions of `gpu_vendors` with a display class are its GPUs.
pub(crate) fn describe(
    document: &Document<'_>,
    path: &str,
    gpu_vendors: &BTreeSet<u16>,
) -> Result<Machine, XmlError> {
    let root = document.root_element();
    let mut reader = Reader {
        path,
        has_bits: root
            .attribute("version")
            .is_some_and(|version| !version.starts_with(['1', '2'])),
        functions: BTreeMap::new(),
        nics: BTreeMap::new(),
    };
    let start = Above {
        parent: PciParent::Unknown,
        bridges: 0,
        numa: not_told(),
    };
    reader.children(root, &start, 0)?;
    Ok(reader.machine(gpu_vendors))
}

struct Reader<'a> {
    path: &'a str,
    /// Whether types of devices are bits.
    has_bits: bool,
    functions: BTreeMap<PciAddress, PciFunction>,
    nics: BTreeMap<PciAddress, Vec<String>>,
}

/// What stands above an object.
#[derive(Clone)]
struct Above {
    parent: PciParent,
    /// PCI bridges below the host bridge.
    bridges: usize,
    numa: Fact<u32>,
}

impl Reader<'_> {
    fn children(
        &mut self,
        node: Node<'_, '_>,
        above: &Above,
        depth: usize,
    ) -> Result<(), XmlError> {
        let objects = node.children().filter(|child| child.has_tag_name("object"));
        for object in objects.filter(|_| depth < DEEPEST) {
            let below = self.object(object, above)?;
            self.children(object, &below, depth + 1)?;
        }
        Ok(())
    }

    /// Takes one object in, and says what stands above those below it.
    fn object(&mut self, node: Node<'_, '_>, above: &Above) -> Result<Above, XmlError> {
        let mut below = above.clone();
        match node.attribute("type").unwrap_or_default() {
            "Bridge" if node.attribute("pci_busid").is_none() => {
                below.parent = host_bridge(node).map_or(PciParent::Unknown, PciParent::HostBridge);
                below.bridges = 0;
            }
            "Bridge" => {
                let kind = match above.bridges {
                    0 => PciKind::RootPort,
                    odd if odd % 2 == 1 => PciKind::SwitchUpstream,
                    _ => PciKind::SwitchDownstream,
                };
                below.parent = PciParent::Bridge(self.function(node, above, kind)?);
                below.bridges += 1;
            }
            "PCIDev" => {
                below.parent = PciParent::Bridge(self.function(node, above, PciKind::Other)?);
            }
            "OSDev" => self.device(node, above),
            _ => {
                if let Some(numa) = node.attribute("nodeset").and_then(only_node) {
                    below.numa = Fact::Known(numa);
                }
            }
        }
        Ok(below)
    }

    fn function(
        &mut self,
        node: Node<'_, '_>,
        above: &Above,
        kind: PciKind,
    ) -> Result<PciAddress, XmlError> {
        let busid = node
            .attribute("pci_busid")
            .ok_or_else(|| XmlError::attribute(self.path, node, "pci_busid"))?;
        let address: PciAddress = busid
            .parse()
            .map_err(|source| XmlError::address(self.path, node, source))?;
        let (class, vendor, device) = ids(node.attribute("pci_type").unwrap_or_default());
        let function = PciFunction {
            parent: above.parent.clone(),
            kind,
            numa: above.numa.clone(),
            class,
            vendor,
            device,
        };
        match self.functions.insert(address, function) {
            None => Ok(address),
            Some(_) => Err(XmlError::Duplicate {
                path: self.path.to_owned(),
                busid: address.to_string(),
            }),
        }
    }

    fn device(&mut self, node: Node<'_, '_>, above: &Above) {
        let kind: u32 = node
            .attribute("osdev_type")
            .and_then(|number| number.parse().ok())
            .unwrap_or_default();
        let is_rdma = if self.has_bits {
            kind & OPENFABRICS_BIT != 0
        } else {
            kind == OPENFABRICS
        };
        if let (true, PciParent::Bridge(pci), Some(name)) =
            (is_rdma, &above.parent, node.attribute("name"))
        {
            self.nics.entry(*pci).or_default().push(name.to_owned());
        }
    }

    fn machine(mut self, gpu_vendors: &BTreeSet<u16>) -> Machine {
        let is_gpu = |(_, function): &(&PciAddress, &PciFunction)| {
            function.kind == PciKind::Other && function.is_gpu(gpu_vendors)
        };
        let gpus = self.functions.iter().filter(is_gpu).enumerate();
        let gpus: Vec<Gpu> = gpus
            .map(|(index, (pci, function))| gpu(index, *pci, function))
            .collect();
        let named = self
            .nics
            .iter()
            .flat_map(|(pci, names)| names.iter().map(|name| (*pci, name.as_str())));
        let nics: Vec<Nic> = named
            .enumerate()
            .map(|(index, (pci, name))| nic(index, pci, name, self.functions.get(&pci)))
            .collect();
        let kinds = gpus.iter().filter_map(|gpu| Some((gpu.pci?, PciKind::Gpu)));
        let kinds = kinds.chain(nics.iter().filter_map(|nic| Some((nic.pci?, PciKind::Nic))));
        for (pci, kind) in kinds {
            if let Some(function) = self.functions.get_mut(&pci) {
                function.kind = kind;
            }
        }
        let path = self.path;
        Machine {
            gpus,
            nics,
            functions: self.functions,
            stated: None,
            tree_file: Some(TreeFile {
                path: path.to_owned(),
                links: BTreeMap::new(),
            }),
            notes: vec![format!(
                "{path} is an export of hwloc: which devices it has depends on its filters, and the state of ports is not in it"
            )],
        }
    }
}

fn gpu(index: usize, pci: PciAddress, function: &PciFunction) -> Gpu {
    Gpu {
        index,
        uuid: Fact::Absent,
        pci: Some(pci),
        minor: Fact::Absent,
        numa: function.numa.clone(),
        product: not_told(),
        bar1_bytes: not_told(),
        nvlinks: BTreeMap::new(),
    }
}

fn nic(index: usize, pci: PciAddress, name: &str, function: Option<&PciFunction>) -> Nic {
    let ids = function.and_then(|f| Some((*f.vendor.known()?, *f.device.known()?)));
    Nic {
        index,
        rdma: Some(name.to_owned()),
        pci: Some(pci),
        numa: function.map_or_else(not_told, |function| function.numa.clone()),
        netdevs: Vec::new(),
        ports: Vec::new(),
        physfn: None,
        bond: false,
        uverbs: Fact::Absent,
        ids: ids.map_or_else(not_told, Fact::Known),
        role: NicRole::Compute,
    }
}

/// `0000:[2b-3b]`: domain and buses below the host bridge; the kernel names it by the first.
fn host_bridge(node: Node<'_, '_>) -> Option<String> {
    let (domain, buses) = node.attribute("bridge_pci")?.split_once(":[")?;
    let (first, _) = buses.split_once('-')?;
    Some(format!("pci{domain}:{first}"))
}

/// `0302 [10de:1db8] [10de:131d] a1 00`: class without the interface, vendor and device.
fn ids(text: &str) -> (Fact<u32>, Fact<u16>, Fact<u16>) {
    let hex = |digits: &str| u16::from_str_radix(digits, 16).ok();
    let mut words = text
        .split([' ', '[', ']', ':'])
        .filter(|word| !word.is_empty());
    let mut next = || words.next().and_then(hex);
    let (class, vendor, device) = (next(), next(), next());
    let class = class.map(|class| u32::from(class) << 8);
    (
        class.map_or_else(not_told, Fact::Known),
        vendor.map_or_else(not_told, Fact::Known),
        device.map_or_else(not_told, Fact::Known),
    )
}

/// The only NUMA node of a set such as `0x00000002`: words of 32 bits, the highest first, of which zeros may be left out.
fn only_node(set: &str) -> Option<u32> {
    let mut nodes = Vec::new();
    for (at, word) in (0..).zip(set.rsplit(',')) {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let word = if digits.is_empty() {
            0
        } else {
            u32::from_str_radix(digits, 16).ok()?
        };
        nodes.extend(
            (0..32)
                .filter(|bit| word >> bit & 1 == 1)
                .map(|bit| at * 32 + bit),
        );
    }
    match nodes[..] {
        [one] => Some(one),
        _ => None,
    }
}

fn not_told<T>() -> Fact<T> {
    Fact::Unreadable("the export does not tell".to_owned())
}

#[cfg(test)]
mod tests;
