use topology::node_file::NodeFile;

use super::*;

const FILE: &str = r#"{"schema": "1.0", "bootId": "b", "nodeUid": "u", "generation": 1, "installHash": "", "resources": [
  {"name": "rdma/gpudirect", "kind": "Pair", "holdDownSeconds": 30, "stableUpSeconds": 60, "unhealthyOnNicDown": true, "envs": [],
   "devices": [DEVICES]}]}"#;

fn device(id: &str, admitted: bool) -> String {
    format!(
        r#"{{"id": "{id}", "gpu": null, "nics": [], "shared": false, "numaNodes": [], "cdiDevices": [], "deviceNodes": [],
            "links": [], "admitted": {admitted}, "verified": false, "reason": "", "pairReason": ""}}"#
    )
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A node file of second 0 with one device admitted and one not.
fn before() -> Before {
    let devices = [device("on", true), device("off", false)].join(",");
    Before {
        node_file: Some(NodeFile::parse(&FILE.replace("DEVICES", &devices)).unwrap()),
        node_file_written: Some(at(0)),
        ..Before::default()
    }
}

fn ids(before: &Before, second: i64) -> Vec<String> {
    offered(before, None, at(second)).into_iter().collect()
}

#[test]
fn what_was_taken_off_the_list_just_now_still_counts() {
    assert_eq!(ids(&before(), 2), ["off", "on"]);
    assert_eq!(ids(&before(), 3), ["on"]);
    let undated = Before {
        node_file_written: None,
        ..before()
    };
    assert_eq!(ids(&undated, 100), ["off", "on"]);
}

#[test]
fn a_boot_without_a_node_file_has_offered_nothing() {
    assert_eq!(ids(&Before::default(), 0), [""; 0]);
}

#[test]
fn a_node_file_that_cannot_be_used_may_have_offered_everything() {
    let mut unknown = Before::default();
    unknown.unusable.unreadable.insert(NODE_FILE.to_owned());
    let mut old = topology::partition::restore(
        before().node_file.as_ref().unwrap(),
        &topology::machine::Machine::default(),
    );
    old.resources[0].devices.truncate(1);
    let all: Vec<_> = offered(&unknown, Some(&old), at(9)).into_iter().collect();
    assert_eq!(all, ["off"]);
}
