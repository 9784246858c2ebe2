use std::collections::BTreeMap;
use std::path::PathBuf;

use host::machine::verbs::VerbsOwner;
use topology::fact::Fact;
use topology::node_file::NodeFile;

use super::facts::Silence;
use super::*;
use crate::link::{Seen, Sightings};
use crate::proto;
use crate::resource::entry;
use crate::sample;

/// A node on which all is well.
fn well(file: &NodeFile) -> Facts {
    let devices: Vec<proto::Device> = file.resources[0]
        .devices
        .iter()
        .map(|device| entry(device, true))
        .collect();
    let up = |n: usize| ((format!("mlx5_{n}"), 1), Seen::Up);
    Facts {
        node_file: Fact::Known(file.to_json()),
        boot_id: Fact::Known(sample::BOOT.to_owned()),
        kubelet_dir: PathBuf::from("/var/lib/kubelet/device-plugins"),
        kubelet: SocketState::Listening,
        sockets: Fact::Known(BTreeMap::from([("gpurdma-a.sock".to_owned(), Ok(devices))])),
        ports: (0..file.resources[0].devices.len())
            .map(up)
            .collect::<Sightings>(),
        verbs: BTreeMap::new(),
    }
}

fn report(change: impl FnOnce(&mut Facts)) -> String {
    let mut facts = well(&sample::node_file(2));
    change(&mut facts);
    let checks = checks(&facts);
    format!("exit {}\n{}", exit_code(&checks), render(&checks))
}

#[test]
fn a_node_on_which_all_is_well() {
    insta::assert_snapshot!(report(|_| {}));
}

#[test]
fn nothing_is_there() {
    insta::assert_snapshot!(report(|facts| {
        facts.node_file = Fact::Absent;
        facts.kubelet = SocketState::Absent;
        facts.sockets = Fact::Absent;
    }));
}

#[test]
fn sockets_of_a_killed_run() {
    insta::assert_snapshot!(report(|facts| {
        let dead = ("gpurdma-a.sock".to_owned(), Err(Silence::Deserted));
        facts.sockets = Fact::Known(BTreeMap::from([dead]));
        facts.kubelet = SocketState::Deserted;
    }));
}

#[test]
fn a_file_of_another_boot_or_that_does_not_parse() {
    let other = report(|facts| facts.boot_id = Fact::Known("another".to_owned()));
    assert!(
        other.starts_with("exit 1") && other.contains("the host is at boot another"),
        "{other}"
    );
    let broken = report(|facts| facts.node_file = Fact::Known("{".to_owned()));
    assert!(
        broken.starts_with("exit 1") && broken.contains("keeps the last good file"),
        "{broken}"
    );
}

#[test]
fn what_cannot_be_read_is_unknown_and_has_its_own_exit_code() {
    let report =
        report(|facts| facts.node_file = Fact::Unreadable("read node.json: denied".to_owned()));
    assert!(
        report.starts_with("exit 3") && report.contains("?     node file: read node.json: denied"),
        "{report}"
    );
}

#[test]
fn devices_say_what_is_against_them() {
    let mut file = sample::node_file(4);
    file.resources[0].devices[0].admitted = false;
    file.resources[0].devices[0].reason = "held by nvidia.com/gpu".to_owned();
    let mut facts = well(&file);
    facts.ports.insert(("mlx5_1".to_owned(), 1), Seen::Down);
    facts.ports.insert(("mlx5_2".to_owned(), 1), Seen::Unknown);
    let served = vec![entry(&file.resources[0].devices[3], false)];
    facts.sockets = Fact::Known(BTreeMap::from([("gpurdma-a.sock".to_owned(), Ok(served))]));
    insta::assert_snapshot!(render(&checks(&facts)));
}

#[test]
fn a_device_node_of_another_nic_fails_and_both_are_named() {
    let report = report(|facts| {
        let owner = VerbsOwner {
            rdma: Fact::Known("mlx5_0".to_owned()),
            pci: Fact::Absent,
        };
        facts.verbs.insert(1, owner);
    });
    assert!(report.starts_with("exit 1"), "{report}");
    assert!(
        report.contains("uverbs1 belongs to mlx5_0 now, and to mlx5_1 ("),
        "{report}"
    );
}

#[test]
fn a_port_that_is_down_is_a_warning_where_the_gpu_is_kept() {
    let mut file = sample::node_file(2);
    file.resources[0].unhealthy_on_nic_down = false;
    let mut facts = well(&file);
    facts.ports.insert(("mlx5_1".to_owned(), 1), Seen::Down);
    let checks = checks(&facts);
    assert_eq!(exit_code(&checks), 0);
    assert!(render(&checks).contains("no active port: mlx5_1 (the GPU is kept)"));
}
