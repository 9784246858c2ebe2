use std::process::Command;

use topology::fact::Fact;
use topology::machine::{LinkLayer, Nic, NicRole, Port};

use super::*;

pub(super) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let root = Root::new(directory.path());
    (directory, root)
}

fn machine(netdev: &str, layer: LinkLayer) -> Machine {
    let port = Port {
        number: 1,
        state: Fact::Absent,
        link_layer: Fact::Known(layer),
        rate_mbps: Fact::Absent,
    };
    let nic = Nic {
        index: 0,
        rdma: Some("mlx5_0".to_owned()),
        pci: "0000:0c:00.0".parse().ok(),
        numa: Fact::Absent,
        netdevs: vec![netdev.to_owned()],
        ports: vec![port],
        physfn: None,
        bond: false,
        uverbs: Fact::Absent,
        ids: Fact::Absent,
        role: NicRole::Compute,
    };
    Machine {
        nics: vec![nic],
        ..Machine::default()
    }
}

const LINKS: &str = r#"[
 {"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"operstate":"UNKNOWN","link_type":"loopback","min_mtu":0,"max_mtu":0,"addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"}]},
 {"ifindex":2,"ifname":"eth0","flags":["BROADCAST","UP","LOWER_UP"],"mtu":1500,"operstate":"UP","link_type":"ether","min_mtu":68,"max_mtu":9978,"master":"bond0","parentbus":"pci","parentdev":"0000:0c:00.0","linkinfo":{"info_slave_kind":"bond"},"addr_info":[]},
 {"ifindex":3,"ifname":"bond0","flags":["MASTER","UP"],"mtu":1500,"operstate":"UP","link_type":"ether","linkinfo":{"info_kind":"bond","info_data":{"mode":"802.3ad"}},"addr_info":[{"family":"inet6","local":"fd00::5","prefixlen":64,"scope":"global","dynamic":true,"dadfailed":true},{"family":"inet","local":"10.0.0.5","prefixlen":24,"scope":"global"}]},
 {"ifindex":4,"link":"bond0","ifname":"bond0.7","flags":[],"mtu":1500,"operstate":"DOWN","link_type":"ether","linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":7}},"addr_info":[]},
 {"ifindex":5,"link":"ib0","ifname":"ib0.8001","flags":["UP"],"mtu":2044,"operstate":"UP","link_type":"infiniband","linkinfo":{"info_kind":"ipoib","info_data":{"key":"0x8001","mode":"datagram","umcast":"0000"}},"addr_info":[]}
]"#;

const ROUTES: &str = r#"[{"dst":"default","gateway":"10.0.0.1","dev":"bond0","protocol":"dhcp","flags":[]},
 {"dst":"default","gateway":"10.9.0.1","dev":"eth5","table":"101","flags":[]},
 {"dst":"10.9.0.0/16","flags":[],"nexthops":[{"gateway":"10.0.0.2","dev":"bond0"},{"via":{"family":"inet6","host":"fe80::1"},"dev":"eth5"}]},
 {"type":"local","dst":"10.0.0.5","dev":"bond0","table":"local"},{"type":"unreachable","dst":"10.8.0.0/16"}]"#;

fn recorded() -> (tempfile::TempDir, Root) {
    tree(&[
        ("run/gpurdma-recorded/ip-address.json", LINKS),
        ("run/gpurdma-recorded/ip-route-4.json", ROUTES),
        (
            "run/gpurdma-recorded/ip-route-6.json",
            r#"[{"dst":"default","gateway":"fe80::1","dev":"bond0","protocol":"ra"}]"#,
        ),
        (
            "run/gpurdma-recorded/ip-rule-4.json",
            r#"[{"priority":0,"src":"all","table":"local"},{"priority":100,"src":"10.9.0.0","srclen":16,"table":"101"}]"#,
        ),
        ("run/gpurdma-recorded/ip-rule-6.json", ""),
        (
            "run/gpurdma-recorded/dcb-pfc-eth0.json",
            r#"{"pfc_cap":8,"prio_pfc":[false,false,false,true,false,false,false,false]}"#,
        ),
        (
            "run/gpurdma-recorded/dcb-app-eth0.json",
            r#"{"dscp_prio":[[26,3," "],[48,6," "]]}"#,
        ),
        (
            "run/gpurdma-recorded/dcb-ets-eth0.json",
            r#"{"tc_bw":[50,0,0,50,0,0,0,0],"tc_tsa":["ets","strict","strict","ets","strict","strict","strict","strict"],"prio_tc":[0,1,2,3,4,5,6,7]}"#,
        ),
        (
            "run/gpurdma-recorded/dcb-dcbx-eth0.json",
            r#"{"host":true,"ieee":true}"#,
        ),
        (
            "run/gpurdma-recorded/ethtool-fec-eth0.json",
            r#"[{"ifname":"eth0","config":["Auto"],"active":["RS"]}]"#,
        ),
        ("sys/class/net/eth0/ecn/roce_rp/enable/3", "1\n"),
        ("sys/class/net/eth0/ecn/roce_rp/enable/4", "0\n"),
        ("sys/class/net/eth0/qos/trust", "dscp\n"),
        (
            "sys/class/infiniband/mlx5_0/tc/1/traffic_class",
            "Global tclass=106\n",
        ),
        (
            "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode",
            "RoCE v2\n",
        ),
        (
            "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos",
            "106\n",
        ),
        (
            "run/systemd/netif/links/2",
            "ADMIN_STATE=configured\nNETWORK_FILE=/run/systemd/network/10-netplan-eth0.network\n",
        ),
        (
            "run/systemd/network/10-netplan-eth0.network",
            "[Match]\nName=eth0\n\n[Link]\nMTUBytes=1500\n",
        ),
    ])
}

#[test]
fn links_come_with_what_lies_above_and_below() {
    let (_keep, root) = recorded();
    std::fs::create_dir_all(root.join("/sys/class/net/eth0/upper_bond0")).unwrap();
    let read = network(&root, &Machine::default(), Depth::Reach);
    let links = read.links.fact.known().unwrap();
    let eth0 = &links["eth0"];
    assert_eq!(
        (eth0.master.as_deref(), eth0.pci),
        (Some("bond0"), "0000:0c:00.0".parse().ok())
    );
    assert_eq!(
        (eth0.min_mtu, eth0.max_mtu, eth0.mtu),
        (Some(68), Some(9978), 1500)
    );
    assert!(eth0.up && eth0.uppers.contains("bond0"));
    assert_eq!(links["lo"].max_mtu, None, "0 is no limit");
    let bond = &links["bond0"];
    let shown: Vec<_> = bond
        .addresses
        .iter()
        .map(|a| (a.net.to_string(), a.dynamic, a.duplicate))
        .collect();
    assert_eq!(
        shown,
        [
            ("10.0.0.5/24".to_owned(), false, false),
            ("fd00::5/64".to_owned(), true, true)
        ]
    );
    assert_eq!(
        (
            links["bond0.7"].lower.as_deref(),
            links["bond0.7"].kind.as_deref()
        ),
        (Some("bond0"), Some("vlan"))
    );
    let child = Child {
        pkey: Some(0x8001),
        mode: Some("datagram".to_owned()),
    };
    assert_eq!(
        (
            links["ib0.8001"].ipoib.as_ref(),
            links["ib0.8001"].lower.as_deref()
        ),
        (Some(&child), Some("ib0"))
    );
}

#[test]
fn routes_of_all_tables_lead_through_interfaces() {
    let (_keep, root) = recorded();
    let read = network(&root, &Machine::default(), Depth::Full);
    let routes = read.routes.fact.known().unwrap();
    let shown: Vec<_> = routes
        .iter()
        .map(|route| format!("{} {} {}", route.table, route.to, route.devices.join("+")))
        .collect();
    assert_eq!(
        shown,
        [
            "101 0.0.0.0/0 eth5",
            "main 0.0.0.0/0 bond0",
            "main 10.9.0.0/16 bond0+eth5",
            "main ::/0 bond0"
        ]
    );
    assert_eq!(
        routes[2].gateways,
        [
            "10.0.0.2".parse::<std::net::IpAddr>().unwrap(),
            "fe80::1".parse().unwrap()
        ]
    );
    let rules = read.rules.fact.known().unwrap();
    assert_eq!(
        (rules[1].from.as_str(), rules[1].table.as_deref()),
        ("10.9.0.0/16", Some("101"))
    );
}

#[test]
fn settings_of_a_roce_interface_are_read() {
    let (_keep, root) = recorded();
    let read = network(&root, &machine("eth0", LinkLayer::Ethernet), Depth::Full);
    let interface = &read.interfaces["eth0"];
    let dcb = interface.dcb.as_ref().unwrap();
    assert_eq!(dcb.pfc.fact, Fact::Known(vec![3]));
    assert_eq!(dcb.dscp.fact, Fact::Known([(26, 3), (48, 6)].into()));
    assert_eq!(
        dcb.ets.fact.known().unwrap().shares,
        [50, 0, 0, 50, 0, 0, 0, 0]
    );
    assert_eq!(
        dcb.dcbx.fact,
        Fact::Known(vec!["host".to_owned(), "ieee".to_owned()])
    );
    assert_eq!(dcb.trust.fact, Fact::Known("dscp".to_owned()));
    assert!(
        matches!(&dcb.buffers.fact, Fact::Unreadable(why) if why.contains("dcb-buffer-eth0.json"))
    );
    let ecn = interface.ecn.as_ref().unwrap();
    assert_eq!(
        (&ecn.reaction.fact, &ecn.notification.fact),
        (&Fact::Known([3].into()), &Fact::Absent)
    );
    assert_eq!(
        interface.fec.as_ref().unwrap().fact.known().unwrap().active,
        ["RS"]
    );
    let owner = &interface.owners[0];
    assert_eq!((owner.manager, owner.mtu), (Manager::Netplan, Some(1500)));
    let port = &read.ports["mlx5_0"][&1];
    assert_eq!(
        (&port.roce_mode.fact, &port.tos.fact),
        (&Fact::Known("RoCE v2".to_owned()), &Fact::Known(106))
    );
    assert_eq!(port.traffic_class.fact, Fact::Known(106));
}

#[test]
fn an_infiniband_interface_has_no_ethernet_settings() {
    let (_keep, root) = recorded();
    let read = network(&root, &machine("ib0", LinkLayer::InfiniBand), Depth::Full);
    let interface = &read.interfaces["ib0"];
    assert_eq!(
        (&interface.dcb, &interface.ecn, &interface.fec),
        (&None, &None, &None)
    );
}

#[test]
fn looking_for_the_roce_mode_creates_nothing() {
    let (_keep, root) = tree(&[("sys/kernel/config/rdma_cm/.keep", "")]);
    let read = network(&root, &machine("eth0", LinkLayer::Ethernet), Depth::Full);
    let port = &read.ports["mlx5_0"][&1];
    assert_eq!((&port.roce_mode.fact, port.configfs), (&Fact::Absent, true));
    assert!(!root.join("/sys/kernel/config/rdma_cm/mlx5_0").exists());
}

#[test]
fn without_recorded_answers_a_tree_tells_nothing_of_the_kernel() {
    let (_keep, root) = tree(&[]);
    let read = network(&root, &Machine::default(), Depth::Reach);
    assert!(
        matches!(&read.links.fact, Fact::Unreadable(why) if why.contains("not recorded in /run/gpurdma-recorded/ip-address.json"))
    );
    assert!(matches!(read.routes.fact, Fact::Unreadable(_)));
    assert!(!is_live(&root));
}

#[test]
fn owners_say_what_they_set() {
    let owners = |files: &[(&str, &str)]| {
        let (_keep, root) = tree(files);
        owners::owners(&root, "eth0", Some(2))
            .into_iter()
            .map(|owner| (owner.manager, owner.mtu, owner.ipoib_mode))
            .collect::<Vec<_>>()
    };
    let connection =
        "[connection]\nid=rail\nuuid=u-1\n[infiniband]\nmtu=2044\ntransport-mode=datagram\n";
    assert_eq!(
        owners(&[
            (
                "run/NetworkManager/devices/2",
                "[device]\nmanaged=true\nconnection-uuid=u-1\n"
            ),
            (
                "etc/NetworkManager/system-connections/rail.nmconnection",
                connection
            ),
        ]),
        [(
            Manager::NetworkManager,
            Some(2044),
            Some("datagram".to_owned())
        )]
    );
    assert_eq!(
        owners(&[("run/NetworkManager/devices/2", "[device]\nmanaged=false\n")]),
        []
    );
    assert_eq!(
        owners(&[("run/systemd/netif/links/2", "ADMIN_STATE=unmanaged\n")]),
        []
    );
    assert_eq!(
        owners(&[(
            "etc/network/interfaces",
            "auto eth0\niface eth0 inet static\n  address 10.0.0.1/24\n  mtu 9000\niface eth1 inet dhcp\n  mtu 1500\n"
        )]),
        [(Manager::Ifupdown, Some(9000), None)]
    );
    assert_eq!(
        owners(&[(
            "etc/sysconfig/network/ifcfg-eth0",
            "MTU='4200'\nIPOIB_MODE='connected'\n"
        )]),
        [(Manager::Wicked, Some(4200), Some("connected".to_owned()))]
    );
    assert_eq!(
        owners(&[(
            "etc/sriov-operator/pci/0000:0c:00.0",
            r#"{"name":"eth0","mtu":9000,"numVfs":4}"#
        )]),
        [(Manager::SriovOperator, Some(9000), None)]
    );
}

/// The kernel's own answers, in a network namespace of a thread of this test; where the machine allows none, the child says so.
#[test]
fn the_kernel_answers_where_the_namespace_is_that_of_the_root() {
    let (_keep, root) = tree(&[("proc/1/ns/.keep", "")]);
    let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    std::os::unix::fs::symlink(&own, root.join("/proc/1/ns/net")).unwrap();
    assert!(is_live(&root));
    if Command::new("ip").arg("-V").output().is_err() {
        println!("no ip on this machine");
        return;
    }
    let read = network(&root, &Machine::default(), Depth::Full);
    assert_eq!(read.links.source, "ip -j -d address show");
    let links = read.links.fact.known().unwrap();
    assert_eq!(links["lo"].layer, "loopback", "{links:?}");
    assert!(read.routes.fact.known().is_some(), "{:?}", read.routes);
    assert!(read.rules.fact.known().is_some(), "{:?}", read.rules);
}
