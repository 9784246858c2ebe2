//! IPoIB and partitions.

use std::collections::BTreeMap;

use host::facts::fabric::{RdmaDevice, RdmaPort};
use host::facts::network::Child;

use super::*;

/// The port's table, by index.
fn with_pkeys(scene: &mut Scene, pkeys: &[u16]) {
    let pkeys: BTreeMap<u32, u16> = (0..).zip(pkeys.iter().copied()).collect();
    let port = RdmaPort {
        physical_state: Fact::Absent,
        lid: Fact::Absent,
        sm_lid: Fact::Absent,
        gids: Fact::Absent,
        pkeys: Fact::Known(pkeys),
    };
    let device = RdmaDevice {
        firmware: Fact::Absent,
        board_id: Fact::Absent,
        ports: [(1, port)].into(),
    };
    scene.state.facts.rdma.insert("mlx5_0".to_owned(), device);
}

fn child(scene: &mut Scene, name: &str, pkey: u16, mtu: u32) {
    let parent = scene.link("ib0").clone();
    let link = Link {
        lower: Some("ib0".to_owned()),
        mtu,
        index: 9,
        ipoib: Some(Child {
            pkey: Some(pkey),
            mode: Some("datagram".to_owned()),
        }),
        ..parent
    };
    scene.links().insert(name.to_owned(), link);
}

const PARTITION: &str = "fabric: {infiniband: {partitions: [{pkey: 18, membership: Full}]}}";
const LIMITED: &str = "fabric: {infiniband: {partitions: [{pkey: 18, membership: Limited}]}}";

/// G69, G70: the fabric uses a key that is not at index 0, or that the port does not have.
#[test]
fn partitions() {
    let mut granted = infiniband_node();
    with_pkeys(&mut granted, &[0x7fff, 0x8012]);
    granted.check("child_of_a_partition_is_made", PARTITION);
    granted.check("limited_member_may_use_the_full_key", LIMITED);
    let mut refused = infiniband_node();
    with_pkeys(&mut refused, &[0xffff]);
    refused.check("pkey_that_the_subnet_manager_did_not_grant", PARTITION);
    let mut limited = infiniband_node();
    with_pkeys(&mut limited, &[0xffff, 0x0012]);
    limited.check("limited_key_where_full_membership_is_asked", PARTITION);
    granted.links().clear();
    granted.check("partition_without_ipoib", PARTITION);
}

/// network-operator#1664 (G72): a child gets 2044 whatever is asked.
#[test]
fn children_that_are_there() {
    let mut scene = infiniband_node();
    with_pkeys(&mut scene, &[0xffff, 0x8012]);
    scene.link("ib0").mtu = 4092;
    child(&mut scene, "ib0.8012", 0x8012, 2044);
    scene.check("child_has_a_smaller_mtu_than_its_parent", PARTITION);
}

#[test]
fn partitions_that_are_no_longer_asked_for() {
    let mut scene = infiniband_node();
    with_pkeys(&mut scene, &[0xffff, 0x8012, 0x8013, 0x8014]);
    for pkey in [0x8012, 0x8013, 0x8014] {
        child(&mut scene, &format!("ib0.{pkey:x}"), pkey, 2044);
    }
    let netdev = scene.netdev("ib0");
    let change = |present| FabricChange::Partition {
        netdev: netdev.clone(),
        pkey: 0x8013,
        present,
    };
    scene.did(change(true), change(false));
    scene.check("own_child_goes_and_others_stay", PARTITION);
}

#[test]
fn modes() {
    let connected = "fabric: {infiniband: {ipoib: {mode: Connected, mtu: 65520}}}";
    infiniband_node().check("connected_mode_with_its_mtu", connected);
    // ipoib-cni#9 (G73): enhanced mode has datagrams only.
    let mut enhanced = infiniband_node();
    enhanced.link("ib0").transmit_queues = Some(64);
    enhanced.check("enhanced_ipoib_has_no_connected_mode", connected);
    let mut owned = infiniband_node();
    owned.owner(
        "ib0",
        Owner {
            manager: host::facts::network::Manager::NetworkManager,
            source: "/etc/NetworkManager/system-connections/ib0.nmconnection".to_owned(),
            mtu: None,
            ipoib_mode: Some("datagram".to_owned()),
        },
    );
    owned.check(
        "mode_is_networkmanagers",
        "fabric: {infiniband: {ipoib: {mode: Connected}}}",
    );
    let mut unknown = infiniband_node();
    unknown.link("ib0").ipoib = None;
    unknown.check("mode_is_unknown", connected);
}

#[test]
fn what_only_the_subnet_manager_can_change() {
    infiniband_node().check(
        "group_of_2048_holds_the_mtu_down",
        "fabric: {infiniband: {ipoib: {mtu: 4092}}}",
    );
    infiniband_node().check("rdma_mtu_is_the_subnet_managers", "fabric: {rdmaMtu: 4096}");
    infiniband_node().check(
        "datagrams_are_not_that_long",
        "fabric: {infiniband: {ipoib: {mtu: 65520}}}",
    );
}

/// There is no VLAN, PFC or RoCE on InfiniBand.
#[test]
fn nothing_of_roce_is_set_on_infiniband() {
    let plan = infiniband_node().plan(
        "fabric: {roce: {netdevMtu: 9000, version: v2, dscp: 26, pfcPriorities: [3], ecnPriorities: [3]}, trafficClasses: [{name: gpu, priority: 3, share: 50}]}",
    );
    assert_eq!(plan, Plan::default());
}
