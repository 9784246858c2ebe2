//! The elements of a topology file. Bus ids of bridges are free names, so they stay texts.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use super::XmlError;
use crate::distance::Distance;
use crate::machine::Nic;
use crate::pci::PciAddress;

/// Elements above the deepest that NCCL could hold (256 per host); anything deeper is cut off, never followed.
const DEEPEST: usize = 256;

#[derive(Default)]
pub(super) struct Tree {
    elements: Vec<Element>,
    by_busid: BTreeMap<String, usize>,
    by_net: BTreeMap<String, usize>,
}

struct Element {
    parent: Option<usize>,
    /// The `numaid` of the `cpu` above; `None` for −1.
    numa: Option<u32>,
}

struct Reader<'a> {
    path: &'a str,
    tree: Tree,
}

impl Tree {
    pub(super) fn parse(text: &str, path: &str) -> Result<Self, XmlError> {
        let document = Document::parse(text).map_err(|source| XmlError::Xml {
            path: path.to_owned(),
            source,
        })?;
        let root = document.root_element();
        let version = root.attribute("version");
        if root.tag_name().name() != "system" || version != Some("1") {
            return Err(XmlError::root(path, root));
        }
        let mut reader = Reader {
            path,
            tree: Self::default(),
        };
        for cpu in root.children().filter(|node| node.has_tag_name("cpu")) {
            let numa = reader.attribute(cpu, "numaid")?.parse().ok();
            reader.children(cpu, None, numa, 0)?;
        }
        Ok(reader.tree)
    }

    pub(super) fn by_address(&self, address: PciAddress) -> Option<usize> {
        let find = |address: PciAddress| self.by_busid.get(&address.to_string()).copied();
        find(address).or_else(|| find(address.with_function(0)))
    }

    pub(super) fn nic(&self, nic: &Nic) -> Option<usize> {
        let named = nic
            .rdma
            .as_ref()
            .and_then(|name| self.by_net.get(name))
            .copied();
        named
            .or_else(|| nic.pci.and_then(|pci| self.by_address(pci)))
            .or_else(|| nic.physfn.and_then(|pci| self.by_address(pci)))
    }

    /// Every `pci` element between two devices is a switch.
    pub(super) fn distance(&self, a: usize, b: usize) -> Distance {
        let (mine, theirs) = (self.upwards(a), self.upwards(b));
        let meeting = mine
            .iter()
            .enumerate()
            .find_map(|(at, e)| Some((at, theirs.iter().position(|other| other == e)?)));
        let numa = |at: usize| self.elements.get(at).and_then(|element| element.numa);
        match (meeting, numa(a), numa(b)) {
            (Some((own, their)), ..) if own + their.saturating_sub(1) <= 1 => Distance::Pix,
            (Some(_), ..) => Distance::Pxb,
            (None, Some(a), Some(b)) if a == b => Distance::Node,
            (None, Some(_), Some(_)) => Distance::Sys,
            _ => Distance::Unknown,
        }
    }

    fn upwards(&self, from: usize) -> Vec<usize> {
        std::iter::successors(Some(from), |at| self.elements.get(*at)?.parent).collect()
    }
}

impl Reader<'_> {
    fn children(
        &mut self,
        node: Node<'_, '_>,
        parent: Option<usize>,
        numa: Option<u32>,
        depth: usize,
    ) -> Result<(), XmlError> {
        if depth > DEEPEST {
            return Ok(());
        }
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "pci" => {
                    let at = self.add(child, parent, numa)?;
                    self.children(child, Some(at), numa, depth + 1)?;
                }
                "nic" => self.nets(child, parent, numa),
                _ => {}
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        node: Node<'_, '_>,
        parent: Option<usize>,
        numa: Option<u32>,
    ) -> Result<usize, XmlError> {
        let busid = self.attribute(node, "busid")?.to_ascii_lowercase();
        let at = self.tree.elements.len();
        self.tree.elements.push(Element { parent, numa });
        match self.tree.by_busid.insert(busid.clone(), at) {
            None => Ok(at),
            Some(_) => Err(XmlError::Duplicate {
                path: self.path.to_owned(),
                busid,
            }),
        }
    }

    /// A `nic` stands below the `pci` element that it is, or directly below a `cpu`.
    fn nets(&mut self, node: Node<'_, '_>, parent: Option<usize>, numa: Option<u32>) {
        let at = parent.unwrap_or_else(|| {
            self.tree.elements.push(Element { parent: None, numa });
            self.tree.elements.len() - 1
        });
        for net in node.children().filter(|net| net.has_tag_name("net")) {
            if let Some(name) = net.attribute("name") {
                self.tree.by_net.insert(name.to_owned(), at);
            }
        }
    }

    fn attribute<'n>(
        &self,
        node: Node<'n, '_>,
        attribute: &'static str,
    ) -> Result<&'n str, XmlError> {
        node.attribute(attribute)
            .ok_or_else(|| XmlError::attribute(self.path, node, attribute))
    }
}
