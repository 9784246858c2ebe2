//! What tests ask of a node and look up in its answers.

use std::collections::BTreeSet;

use crds::GpuRdmaNodeStatus;
use crds::cluster::Mode;
use crds::node::NodeConfig;
use node_agent::cycle::{Turn, cycle};
use node_agent::desired::Desired;
use node_agent::settings::NODE_FILE;
use topology::node_file::{NodeDevice, NodeFile};

use crate::common::{Answers, Node};

pub(crate) const MACHINE: &str = "nvidia-dgx-h100";

pub(crate) fn enforce(config: NodeConfig) -> Desired {
    let desired = Desired::of_config(config).unwrap();
    Desired {
        node_uid: "uid-1".to_owned(),
        generation: 1,
        ..desired
    }
}

pub(crate) fn nothing_asked() -> Desired {
    enforce(NodeConfig::default())
}

pub(crate) fn in_mode(mode: Mode) -> Desired {
    Desired {
        mode,
        ..nothing_asked()
    }
}

pub(crate) async fn turn(node: &Node, desired: &Desired) -> Turn {
    let mut session = node.session.take();
    let turn = cycle(&node.settings, &mut session, desired, None, node.now()).await;
    node.session.replace(session);
    turn.unwrap()
}

pub(crate) fn node_file(node: &Node) -> NodeFile {
    NodeFile::parse(&node.read(NODE_FILE)).unwrap()
}

pub(crate) fn devices(node: &Node) -> Vec<NodeDevice> {
    node_file(node)
        .resources
        .into_iter()
        .flat_map(|resource| resource.devices)
        .collect()
}

pub(crate) fn admitted(node: &Node) -> usize {
    devices(node)
        .iter()
        .filter(|device| device.admitted)
        .count()
}

pub(crate) fn finding_ids(status: &GpuRdmaNodeStatus) -> BTreeSet<&str> {
    status
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect()
}

pub(crate) fn reason<'a>(status: &'a GpuRdmaNodeStatus, condition: &str) -> (&'a str, &'a str) {
    let found = status
        .conditions
        .iter()
        .find(|c| c.type_ == condition)
        .unwrap();
    (found.status.as_str(), found.reason.as_str())
}

pub(crate) fn advertises(name: &str, ids: &[String]) -> Answers {
    Answers {
        allocatable: vec![(name.to_owned(), ids.to_vec())],
        held: vec![],
    }
}

/// Lets the agent find its pairs and the plugin offer them.
pub(crate) async fn offers(node: &mut Node) {
    node.start_kubelet(Answers::default());
    turn(node, &nothing_asked()).await;
    node.start_kubelet(advertises("rdma/gpudirect", &node.uuids()));
}

pub(crate) fn holds(name: &str, ids: &[String]) -> Answers {
    Answers {
        held: vec![(name.to_owned(), ids.to_vec())],
        ..advertises(name, ids)
    }
}
