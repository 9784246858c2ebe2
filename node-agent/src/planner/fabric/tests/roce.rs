//! MTU and quality of service of Ethernet ports.

use host::facts::network::Manager;

use super::*;

const MTU: &str = "fabric: {roce: {netdevMtu: 9000}}";

fn owner(manager: Manager, mtu: Option<u32>) -> Owner {
    Owner {
        manager,
        source: "/run/systemd/network/10-netplan-eth0.network".to_owned(),
        mtu,
        ipoib_mode: None,
    }
}

/// G50, G51: a rail at 1500 negotiates an RDMA MTU of 1024, and peers with another one hang.
#[test]
fn mtu_is_raised_to_what_is_asked() {
    roce_node().check("mtu_1500_is_raised", MTU);
    roce_node().check("rdma_mtu_alone_makes_room", "fabric: {rdmaMtu: 4096}");
    let mut large = roce_node();
    large.link("eth0").mtu = 9000;
    large.check("rdma_mtu_has_room", "fabric: {rdmaMtu: 4096}");
}

#[test]
fn mtu_that_the_driver_does_not_take() {
    let mut scene = roce_node();
    scene.link("eth0").max_mtu = Some(2048);
    scene.check("mtu_beyond_the_driver", MTU);
}

#[test]
fn mtu_of_someone_else() {
    let mut scene = roce_node();
    scene.owner("eth0", owner(Manager::Netplan, Some(1500)));
    scene.check("mtu_is_netplans", MTU);
    let mut silent = roce_node();
    silent.owner("eth0", owner(Manager::NetworkManager, None));
    silent.check(
        "mtu_is_nobodys_though_networkmanager_has_the_interface",
        MTU,
    );
}

#[test]
fn mtu_that_was_set_before() {
    let mut scene = roce_node();
    let netdev = scene.netdev("eth0");
    let mtu = |mtu| FabricChange::Mtu {
        netdev: netdev.clone(),
        mtu,
    };
    scene.did(mtu(9000), mtu(1500));
    scene.check("mtu_taken_back_by_someone", MTU);
    scene.link("eth0").index = 40;
    scene.check("mtu_gone_with_the_driver_is_set_again", MTU);
}

#[test]
fn mtu_of_what_lies_on_the_rail() {
    let mut vlan = roce_node();
    vlan.over("eth0.7", "vlan", Some("eth0"));
    vlan.check("vlan_on_the_rail_has_a_smaller_mtu", MTU);
    let mut bonded = nic(0, "eth0");
    bonded.netdevs.push("eth1".to_owned());
    bonded.bond = true;
    let mut bond = Scene::new(vec![bonded]);
    bond.over("bond0", "bond", None);
    for port in ["eth0", "eth1"] {
        bond.link(port).master = Some("bond0".to_owned());
    }
    bond.check("bond_takes_the_mtu_for_its_ports", MTU);
}

/// G55: DSCP 59 needs a lossless priority, or retries end in a hang.
#[test]
fn priorities() {
    let lossless = "fabric: {roce: {dscp: 59, pfcPriorities: [5]}}";
    roce_node().check("lossless_priority_for_a_dscp", lossless);
    roce_node().check(
        "dscp_alone_has_the_kernels_priority",
        "fabric: {roce: {dscp: 26}}",
    );
    let mut wrong = roce_node();
    wrong.dcb("eth0").dscp = found([(26, 0)].into());
    wrong.dcb("eth0").trust = found("pcp".to_owned());
    wrong.check(
        "out_of_tree_driver_trusts_the_vlan_tag",
        "fabric: {roce: {dscp: 26}}",
    );
    roce_node().check("no_priority_pauses", "fabric: {roce: {pfcPriorities: []}}");
    roce_node().check(
        "priority_that_is_none",
        "fabric: {roce: {pfcPriorities: [8]}}",
    );
    roce_node().check(
        "dscp_and_traffic_class_contradict",
        "fabric: {roce: {dscp: 26, trafficClass: 236}}",
    );
}

#[test]
fn priorities_that_are_not_ours() {
    let lossless = "fabric: {roce: {dscp: 26, pfcPriorities: [3]}}";
    let mut switch = roce_node();
    switch.dcb("eth0").dcbx = found(vec!["lld_managed".to_owned()]);
    switch.check("the_switch_decides_on_priorities", lossless);
    let mut none = roce_node();
    none.dcb("eth0").pfc = absent("dcb -j pfc show dev eth0");
    none.dcb("eth0").dscp.fact =
        Fact::Unreadable("`dcb -j app show dev eth0`: no answer within 5 s".to_owned());
    none.check("driver_without_dcb", lossless);
    let mut virtual_function = nic(1, "eth1");
    virtual_function.physfn = nic(0, "eth0").pci;
    Scene::new(vec![virtual_function]).check("virtual_function_has_its_ports_priorities", lossless);
}

/// G56: what only one library is told, the other does not know; the port's own default reaches all.
#[test]
fn traffic_class_of_all_connections() {
    let config = "fabric: {roce: {trafficClass: 106}}";
    roce_node().check("traffic_class_with_the_in_tree_driver", config);
    let mut ofed = roce_node();
    ofed.port("mlx5_0").has_traffic_class = true;
    ofed.check("traffic_class_with_the_out_of_tree_driver", config);
    ofed.port("mlx5_0").traffic_class = found(236);
    ofed.check("traffic_class_is_another", config);
}

#[test]
fn congestion_notification() {
    let config = "fabric: {roce: {ecnPriorities: [3]}}";
    roce_node().check("ecn_with_the_in_tree_driver_is_unknown", config);
    let mut ofed = roce_node();
    ofed.interface("eth0").ecn = Some(Ecn {
        reaction: found([3, 4].into()),
        notification: found(BTreeSet::new()),
    });
    ofed.check("ecn_of_exactly_the_asked_priorities", config);
}

#[test]
fn bandwidth_by_class() {
    let half = "fabric: {trafficClasses: [{name: gpu, priority: 3, share: 50}, {name: storage, priority: 4, share: 20}]}";
    roce_node().check("bandwidth_of_two_classes", half);
    let classes =
        (0..8).map(|priority| format!("{{name: c{priority}, priority: {priority}, share: 10}}"));
    let all = format!(
        "fabric: {{trafficClasses: [{}]}}",
        classes.collect::<Vec<_>>().join(", ")
    );
    roce_node().check("bandwidth_that_nobody_has", &all);
}

#[test]
fn rdma_cm() {
    let config = "fabric: {roce: {version: v2}}";
    roce_node().check("roce_mode_that_nobody_shows", config);
    let mut first = roce_node();
    first.port("mlx5_0").roce_mode = found("IB/RoCE v1".to_owned());
    first.check("roce_mode_is_version_1", config);
    let mut unloaded = roce_node();
    unloaded.port("mlx5_0").configfs = false;
    unloaded.check("rdma_cm_is_not_loaded", config);
}
