//! What the field's tools said, as text: from the tools on a live machine, from files in a captured tree.

use std::collections::BTreeMap;

use topology::fact::Fact;
use topology::pci::PciAddress;

use crate::facts::RECORDED;
use crate::root::Root;

/// What each tool said. The default is that nobody asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnswers {
    /// `nft -j list ruleset`.
    pub nft_ruleset: Fact<String>,
    /// `firewall-cmd --list-all-zones`.
    pub firewalld_zones: Fact<String>,
    /// `rdma -j resource show qp`.
    pub rdma_queue_pairs: Fact<String>,
    /// `rdma -j resource show cm_id`.
    pub rdma_connections: Fact<String>,
    /// `mstconfig -e -d ADDRESS query …`, by function.
    pub firmware: BTreeMap<PciAddress, Fact<String>>,
}

impl ToolAnswers {
    /// The answers that a captured tree carries. One that is not there was not recorded: that says nothing.
    #[must_use]
    pub fn recorded(root: &Root) -> Self {
        let read = |name: &str| recorded(root, name);
        let names = root.entries(&format!("{RECORDED}/mstconfig"));
        let names = names.known().cloned().unwrap_or_default();
        let firmware = names.iter().filter_map(|name| {
            let address = name.strip_suffix(".txt")?.parse().ok()?;
            Some((address, read(&format!("mstconfig/{name}"))))
        });
        Self {
            nft_ruleset: read("nft-ruleset.json"),
            firewalld_zones: read("firewalld-zones.txt"),
            rdma_queue_pairs: read("rdma-qp.json"),
            rdma_connections: read("rdma-cm-id.json"),
            firmware: firmware.collect(),
        }
    }

    /// Whether the tree has recorded answers: its machine is not the one that runs here.
    #[must_use]
    pub fn are_recorded(root: &Root) -> bool {
        root.resolve(RECORDED).is_ok()
    }
}

fn recorded(root: &Root, name: &str) -> Fact<String> {
    let path = format!("{RECORDED}/{name}");
    match root.read(&path) {
        Fact::Absent => Fact::Unreadable(format!("{path} was not recorded")),
        other => other,
    }
}
