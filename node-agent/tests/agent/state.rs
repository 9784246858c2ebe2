//! Files of the agent's own that are broken, unreadable or gone.

use std::path::PathBuf;

use node_agent::cycle::cycle;
use node_agent::gather::GatherError;
use node_agent::settings::{ATTEMPTS_FILE, NODE_FILE, PARTITION_FILE};
use topology::node_file::NodeDevice;

use crate::ask::{MACHINE, admitted, devices, finding_ids, holds, nothing_asked, turn};
use crate::common::{Answers, Node};

/// A directory in the place of the file: it is there, and reading it fails.
fn make_unreadable(node: &Node, path: &str) -> PathBuf {
    node.remove(path);
    let path = node.settings.root.join(path);
    std::fs::create_dir(&path).unwrap();
    path
}

fn swap(file: &str, a: &NodeDevice, b: &NodeDevice) -> String {
    let (a, b) = (
        a.nics[0].pci.as_ref().unwrap(),
        b.nics[0].pci.as_ref().unwrap(),
    );
    file.replace(a, "other").replace(b, a).replace("other", b)
}

/// A node whose first two pairs have each other's NIC: what discovery would never give again by itself.
async fn swapped() -> (Node, Vec<NodeDevice>) {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    let before = devices(&node);
    for path in [PARTITION_FILE, NODE_FILE] {
        let mut text = swap(&node.read(path), &before[0], &before[1]);
        let (a, b) = (&before[0].nics[0].rdma, &before[1].nics[0].rdma);
        let quoted = |name: &str| format!("\"{name}\"");
        text = text.replace(&quoted(a), "\"other\"");
        text = text
            .replace(&quoted(b), &quoted(a))
            .replace("\"other\"", &quoted(b));
        node.put(path, &text);
    }
    node.restart_agent();
    let swapped = devices(&node);
    assert_eq!(swapped[0].nics[0].rdma, before[1].nics[0].rdma);
    let held: Vec<String> = swapped.iter().map(|device| device.id.clone()).collect();
    node.start_kubelet(holds("rdma/gpudirect", &held[..1]));
    (node, swapped)
}

fn nics(devices: &[NodeDevice]) -> Vec<(String, Vec<String>)> {
    let nics = |d: &NodeDevice| d.nics.iter().map(|nic| nic.rdma.clone()).collect();
    devices.iter().map(|d| (d.id.clone(), nics(d))).collect()
}

#[tokio::test]
async fn a_held_pair_keeps_its_nic_whatever_becomes_of_the_partition() {
    for lose in ["broken", "unreadable", "gone"] {
        let (node, before) = swapped().await;
        match lose {
            "broken" => node.put(PARTITION_FILE, "{"),
            "unreadable" => drop(make_unreadable(&node, PARTITION_FILE)),
            _ => node.remove(PARTITION_FILE),
        }
        turn(&node, &nothing_asked()).await;
        assert_eq!(nics(&devices(&node))[..2], nics(&before)[..2], "{lose}");
        assert_eq!(admitted(&node), 8, "{lose}");
    }
}

#[tokio::test]
async fn a_broken_file_is_put_aside_and_an_unreadable_one_left() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    node.put(PARTITION_FILE, "{ not ours");
    node.put(ATTEMPTS_FILE, "[]");
    turn(&node, &nothing_asked()).await;
    assert_eq!(node.read(&format!("{PARTITION_FILE}.bad")), "{ not ours");
    assert_eq!(node.read(&format!("{ATTEMPTS_FILE}.bad")), "[]");
    assert!(node.read(PARTITION_FILE).contains("rdma/gpudirect"));
    let directory = make_unreadable(&node, PARTITION_FILE);
    let status = turn(&node, &nothing_asked()).await.status;
    assert!(finding_ids(&status).contains("STATE_UNREADABLE"));
    assert_eq!(admitted(&node), 8);
    assert!(directory.is_dir());
}

/// Nothing tells which parts a held device has, so that nothing may be paired anew: not in the next turns either, which
/// find the node file of this one.
#[tokio::test]
async fn with_every_memory_lost_nothing_is_handed_out_while_a_device_is_held() {
    let (node, before) = swapped().await;
    node.put(PARTITION_FILE, "{");
    node.remove(NODE_FILE);
    for _ in 0..3 {
        let status = turn(&node, &nothing_asked()).await.status;
        assert_eq!((before.len(), devices(&node).len()), (8, 0));
        assert!(finding_ids(&status).contains("STATE_UNREADABLE"));
    }
    let mut node = node;
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    assert_eq!(admitted(&node), 8);
}

/// The plugin goes on with the last node file that it could read: what it may hand out in this moment is not known.
#[tokio::test]
async fn with_every_memory_lost_what_is_on_offer_is_withdrawn_before_anything_is_paired() {
    let (mut node, before) = swapped().await;
    node.start_kubelet(Answers::default());
    node.put(PARTITION_FILE, "{");
    node.put(NODE_FILE, "{");
    turn(&node, &nothing_asked()).await;
    assert_eq!(devices(&node), []);
    turn(&node, &nothing_asked()).await;
    assert_eq!((before.len(), admitted(&node)), (8, 8));
}

#[tokio::test]
async fn a_file_of_a_later_release_is_read() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    let newer = node.read(PARTITION_FILE).replacen('{', "{\"later\": 1,", 1);
    node.put(PARTITION_FILE, &newer);
    node.put(
        ATTEMPTS_FILE,
        "{\"installHash\": \"\", \"actions\": {}, \"later\": {}}",
    );
    node.restart_agent();
    let status = turn(&node, &nothing_asked()).await.status;
    assert!(!finding_ids(&status).contains("STATE_UNREADABLE"));
}

#[tokio::test]
async fn a_host_that_hangs_is_reported_and_left_as_it_is() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    let first = turn(&node, &nothing_asked()).await.status;
    let mut session = node.session.take();
    let (wake, asleep) = std::sync::mpsc::channel::<()>();
    let short = std::time::Duration::from_millis(10);
    let hang = move || {
        let _ = asleep.recv();
        let nothing = host::facts::Facts::default();
        let late = node_agent::host_state::HostState::try_from(nothing);
        Err(GatherError::from(late.unwrap_err()))
    };
    assert!(session.reader.read(short, hang).await.is_err());
    let before = node.tree();
    for _ in 0..2 {
        let asks = nothing_asked();
        let turn = cycle(
            &node.settings,
            &mut session,
            &asks,
            Some(&first),
            node.now(),
        )
        .await;
        let status = turn.unwrap().status;
        let told = &status.findings[0];
        assert_eq!(
            (told.id.as_str(), told.component.as_str()),
            ("HOST_UNREADABLE", "host")
        );
        assert_eq!(status.findings.len(), first.findings.len() + 1);
        assert_eq!(status.pairs, first.pairs);
    }
    assert_eq!(node.tree(), before);
    drop(wake);
}
