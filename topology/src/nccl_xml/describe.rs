//! The machine that a topology file describes: a cloud's file, or a dump of NCCL's own view.
//!
//! A GPU is a function with a `gpu` element or a display class; an RDMA device is a `net` element below a function, or a
//! network function that has none, because NCCL adds them at run time. Bus ids of bridges must be addresses here.

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::{Document, Node};

use super::XmlError;
use crate::fact::Fact;
use crate::machine::{
    Gpu, LinkLayer, Machine, Nic, NicRole, PciFunction, PciKind, PciLink, PciParent, Port,
    TreeFile, is_gpu_class,
};
use crate::pci::PciAddress;

/// NCCL's version, and RCCL's, whose elements are the same as far as they are read here.
const VERSIONS: [&str; 2] = ["1", "2"];
/// Deeper than any machine; anything below is cut off.
const DEEPEST: usize = 64;

/// Describes the machine of a topology file.
pub(crate) fn describe(document: &Document<'_>, path: &str) -> Result<Machine, XmlError> {
    let root = document.root_element();
    let version = root.attribute("version").unwrap_or_default();
    if root.tag_name().name() != "system" || !VERSIONS.contains(&version) {
        return Err(XmlError::root(path, root));
    }
    let mut reader = Reader {
        path,
        ..Reader::default()
    };
    for cpu in elements(root, "cpu") {
        let numa = numa(attribute(path, cpu, "numaid")?);
        reader.children(cpu, &PciParent::Unknown, &numa, 0)?;
    }
    Ok(reader.machine())
}

#[derive(Default)]
struct Reader<'a> {
    path: &'a str,
    functions: BTreeMap<PciAddress, PciFunction>,
    links: BTreeMap<PciAddress, PciLink>,
    nics: BTreeMap<PciAddress, Vec<Nic>>,
    /// `NVLink` connections from a GPU to an address.
    nvlinks: BTreeMap<PciAddress, BTreeMap<PciAddress, u32>>,
    notes: BTreeSet<String>,
}

impl Reader<'_> {
    fn children(
        &mut self,
        node: Node<'_, '_>,
        parent: &PciParent,
        numa: &Fact<u32>,
        depth: usize,
    ) -> Result<(), XmlError> {
        if depth > DEEPEST {
            return Ok(());
        }
        for child in elements(node, "pci") {
            let address = self.function(child, parent, numa)?;
            self.children(child, &PciParent::Bridge(address), numa, depth + 1)?;
        }
        if *parent == PciParent::Unknown {
            for net in nets(node) {
                let name = net.attribute("name").unwrap_or_default();
                self.notes.insert(format!(
                    "{}: {name} is no PCI function and is left out",
                    self.path
                ));
            }
        }
        Ok(())
    }

    fn function(
        &mut self,
        node: Node<'_, '_>,
        parent: &PciParent,
        numa: &Fact<u32>,
    ) -> Result<PciAddress, XmlError> {
        let busid = attribute(self.path, node, "busid")?;
        let address: PciAddress = busid
            .parse()
            .map_err(|source| XmlError::address(self.path, node, source))?;
        let class = hex(node, "class");
        let kind = kind(node, class.known().copied());
        let function = PciFunction {
            parent: parent.clone(),
            kind,
            numa: numa.clone(),
            class,
            vendor: hex(node, "vendor"),
            device: hex(node, "device"),
        };
        if kind == PciKind::Nic {
            let nics = nics_of(node, address, &function);
            self.nics.insert(address, nics);
        }
        if kind == PciKind::Gpu {
            self.nvlinks.insert(address, nvlinks(node));
        }
        if let Some(link) = link(node) {
            self.links.insert(address, link);
        }
        match self.functions.insert(address, function) {
            None => Ok(address),
            Some(_) => Err(XmlError::Duplicate {
                path: self.path.to_owned(),
                busid: address.to_string(),
            }),
        }
    }

    fn machine(mut self) -> Machine {
        self.say_what_is_missing();
        let gpus: Vec<PciAddress> = self.nvlinks.keys().copied().collect();
        let index: BTreeMap<PciAddress, usize> = gpus
            .iter()
            .enumerate()
            .map(|(at, pci)| (*pci, at))
            .collect();
        let gpu = |pci: &PciAddress| {
            let links = self.nvlinks.get(pci).into_iter().flatten();
            let nvlinks = links.filter_map(|(to, count)| Some((*index.get(to)?, *count)));
            Gpu {
                index: index.get(pci).copied().unwrap_or_default(),
                uuid: Fact::Absent,
                pci: Some(*pci),
                minor: Fact::Absent,
                numa: numa_of(&self.functions, *pci),
                product: not_told(),
                bar1_bytes: not_told(),
                nvlinks: nvlinks.collect(),
            }
        };
        let gpus = gpus.iter().map(gpu).collect();
        let mut nics: Vec<Nic> = self.nics.into_values().flatten().collect();
        for (index, nic) in nics.iter_mut().enumerate() {
            nic.index = index;
        }
        Machine {
            gpus,
            nics,
            functions: self.functions,
            stated: None,
            tree_file: Some(TreeFile {
                path: self.path.to_owned(),
                links: self.links,
            }),
            notes: self.notes.into_iter().collect(),
        }
    }

    fn say_what_is_missing(&mut self) {
        let path = self.path;
        self.notes.insert(format!(
            "{path} knows no host bridges: what may be PHB is shown as NODE"
        ));
        let untold = |function: &&PciFunction| {
            function.kind == PciKind::Other && function.class.known().is_none()
        };
        let count = self.functions.values().filter(untold).count();
        if count > 0 {
            self.notes.insert(format!(
                "{path}: {count} functions have no class, so it does not tell whether they are GPUs or NICs"
            ));
        }
    }
}

/// What the elements below tell, else the class.
fn kind(node: Node<'_, '_>, class: Option<u32>) -> PciKind {
    if elements(node, "gpu").next().is_some() {
        PciKind::Gpu
    } else if nets(node).next().is_some() {
        PciKind::Nic
    } else if elements(node, "pci").next().is_some() || class.is_some_and(|c| c >> 8 == 0x0604) {
        PciKind::SwitchUpstream
    } else if class.is_some_and(is_gpu_class) {
        PciKind::Gpu
    } else if class.is_some_and(|class| class >> 16 == 0x02) {
        PciKind::Nic
    } else {
        PciKind::Other
    }
}

fn nics_of(node: Node<'_, '_>, pci: PciAddress, function: &PciFunction) -> Vec<Nic> {
    let described: Vec<Nic> = nets(node)
        .map(|net| {
            nic(
                pci,
                function,
                net.attribute("name"),
                port(function, Some(net)),
            )
        })
        .collect();
    if described.is_empty() {
        vec![nic(pci, function, None, port(function, None))]
    } else {
        described
    }
}

fn nic(pci: PciAddress, function: &PciFunction, name: Option<&str>, port: Port) -> Nic {
    let ids = function.vendor.known().zip(function.device.known());
    Nic {
        index: 0,
        rdma: name.map(str::to_owned),
        pci: Some(pci),
        numa: function.numa.clone(),
        netdevs: Vec::new(),
        ports: vec![port],
        physfn: None,
        bond: false,
        uverbs: Fact::Absent,
        ids: ids.map_or_else(not_told, |(vendor, device)| Fact::Known((*vendor, *device))),
        role: NicRole::Compute,
    }
}

/// NCCL folds the functions of a card into one and counts their ports through; the kernel's number is not in the file.
fn port(function: &PciFunction, net: Option<Node<'_, '_>>) -> Port {
    let infiniband = function.class.known().is_some_and(|c| c >> 8 == 0x0207);
    let speed = net.and_then(|net| net.attribute("speed")?.parse().ok());
    Port {
        number: 1,
        state: not_told(),
        link_layer: if infiniband {
            Fact::Known(LinkLayer::InfiniBand)
        } else {
            not_told()
        },
        rate_mbps: speed
            .filter(|mbps| *mbps > 0)
            .map_or_else(not_told, Fact::Known),
    }
}

/// `nvlink` elements of NCCL, `xgmi` of RCCL.
fn nvlinks(node: Node<'_, '_>) -> BTreeMap<PciAddress, u32> {
    let links = elements(node, "gpu").flat_map(|gpu| gpu.children());
    let links = links.filter(|link| ["nvlink", "xgmi"].contains(&link.tag_name().name()));
    let link = |link: Node<'_, '_>| {
        let target = link.attribute("target")?.parse().ok()?;
        Some((target, link.attribute("count")?.parse().ok()?))
    };
    links.filter_map(link).collect()
}

/// Empty or zero where NCCL could not tell. Other signs than those of `32.0 GT/s PCIe` are no speed.
fn link(node: Node<'_, '_>) -> Option<PciLink> {
    let speed = node.attribute("link_speed")?;
    let width = node.attribute("link_width")?.parse().ok()?;
    let plain = |sign: char| sign.is_ascii_alphanumeric() || " ./".contains(sign);
    let is_speed = (1..=32).contains(&speed.len()) && speed.chars().all(plain);
    (is_speed && width > 0).then(|| PciLink {
        speed: speed.to_owned(),
        width,
    })
}

fn nets<'n, 'input>(node: Node<'n, 'input>) -> impl Iterator<Item = Node<'n, 'input>> {
    elements(node, "nic").flat_map(|nic| elements(nic, "net"))
}

fn elements<'n, 'input>(
    node: Node<'n, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'n, 'input>> {
    node.children()
        .filter(move |child| child.has_tag_name(name))
}

fn attribute<'n>(path: &str, node: Node<'n, '_>, name: &'static str) -> Result<&'n str, XmlError> {
    node.attribute(name)
        .ok_or_else(|| XmlError::attribute(path, node, name))
}

/// −1 is what NCCL writes where the kernel knows no node.
fn numa(text: &str) -> Fact<u32> {
    text.parse().map_or(Fact::Absent, Fact::Known)
}

fn numa_of(functions: &BTreeMap<PciAddress, PciFunction>, pci: PciAddress) -> Fact<u32> {
    functions
        .get(&pci)
        .map_or_else(not_told, |function| function.numa.clone())
}

fn hex<T: TryFrom<u32>>(node: Node<'_, '_>, name: &str) -> Fact<T> {
    let text = node.attribute(name);
    let digits = text.map(|text| text.strip_prefix("0x").unwrap_or(text));
    let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    value
        .and_then(|value| T::try_from(value).ok())
        .map_or_else(not_told, Fact::Known)
}

fn not_told<T>() -> Fact<T> {
    Fact::Unreadable("the topology file does not tell".to_owned())
}
