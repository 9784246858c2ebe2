use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use topology::fact::Fact;

use super::capture;
use super::mask::{Masks, resource, xml};
use crate::facts::{Facts, facts};
use crate::machine::Options;
use crate::root::Root;

const NIC: &str = "sys/devices/pci0000:10/0000:10:01.0/0000:14:00.0";
const SECRETS: [&str; 8] = [
    "b859", "b8:59", "0a0b", "5c11", "deadbeef", "node17", "7f7f7f7f", "c0ffee",
];

const DEVICE_FILES: [(&str, &str); 13] = [
    ("class", "0x020000"),
    ("vendor", "0x15b3"),
    ("device", "0x101d"),
    ("numa_node", "0"),
    (
        "resource",
        "0x00000000c0ffee00 0x00000000c0ffeeff 0x0000000000040200",
    ),
    ("net/enxb859aabbccdd/address", "b8:59:aa:bb:cc:dd"),
    (
        "infiniband/rocexb85900000000aaaa/node_guid",
        "b859:0000:0000:aaaa",
    ),
    ("infiniband/rocexb85900000000aaaa/node_desc", "node17 mlx5"),
    (
        "infiniband/rocexb85900000000aaaa/ports/1/state",
        "4: ACTIVE",
    ),
    (
        "infiniband/rocexb85900000000aaaa/ports/1/gids/0",
        "fe80:0000:0000:0000:b859:0000:0000:aaaa",
    ),
    (
        "infiniband/rocexb85900000000aaaa/ports/1/gids/3",
        "0000:0000:0000:0000:0000:ffff:0a0b:0c0d",
    ),
    (
        "infiniband/rocexb85900000000aaaa/ports/1/gids/4",
        "0000:0000:0000:0000:0000:0000:0000:0000",
    ),
    (
        "infiniband/rocexb85900000000aaaa/ports/1/gid_attrs/ndevs/0",
        "enxb859aabbccdd",
    ),
];
const OTHER_FILES: [(&str, &str); 6] = [
    ("/sys/class/net/veth7f7f7f7f/address", "7f:7f:7f:7f:7f:7f"),
    (
        "/proc/driver/nvidia/gpus/0000:13:00.0/information",
        "GPU UUID: \t GPU-deadbeef-0000-0000-0000-000000000001",
    ),
    ("/proc/sys/kernel/random/boot_id", "deadbeef-1"),
    ("/proc/modules", "ib_core 1 0 - Live 0xffffffffc0ffee00"),
    (
        "/etc/infiniband/openib.conf",
        "ONBOOT=yes\nNODE_DESC=node17",
    ),
    ("/etc/hostname", "node17"),
];

/// A machine full of what should not be shown around.
fn machine() -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    let mut config = vec![0x77; 4096];
    config[300..304].copy_from_slice(b"5c11");
    root.put(&format!("/{NIC}/config"), config).unwrap();
    for (file, value) in DEVICE_FILES {
        root.put(&format!("/{NIC}/{file}"), format!("{value}\n"))
            .unwrap();
    }
    for (path, value) in OTHER_FILES {
        root.put(path, format!("{value}\n")).unwrap();
    }
    let function = format!("/{NIC}");
    root.put_link("/sys/bus/pci/devices/0000:14:00.0", &function)
        .unwrap();
    for (class, name) in [
        ("infiniband", "rocexb85900000000aaaa"),
        ("net", "enxb859aabbccdd"),
    ] {
        let entry = format!("/{NIC}/{class}/{name}");
        root.put_link(&format!("{entry}/device"), &function)
            .unwrap();
        root.put_link(&format!("/sys/class/{class}/{name}"), &entry)
            .unwrap();
    }
    (directory, root)
}

fn copy(from: &Root) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    assert_eq!(capture(from, &root).unwrap(), Vec::<String>::new());
    (directory, root)
}

/// Every file and link below a folder with its content or target.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            found.insert(path, target.to_string_lossy().into_owned().into_bytes());
        } else if path.is_dir() {
            found.extend(content(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

fn read(root: &Root) -> Facts {
    facts(root, &Options::default(), None)
}

#[test]
fn nothing_that_identifies_the_machine_is_copied() {
    let (_keep, root) = machine();
    let (directory, _copy) = copy(&root);
    let files = content(directory.path());
    assert!(files.len() > 15);
    for (path, bytes) in files {
        let inside = path
            .strip_prefix(directory.path())
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let text = format!("{inside} {}", String::from_utf8_lossy(&bytes));
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[test]
fn what_is_copied_reads_as_the_machine_did() {
    let (_keep, root) = machine();
    let (_copied, copy) = copy(&root);
    let (before, after) = (read(&root), read(&copy));
    assert_eq!(after.machine.functions, before.machine.functions);
    assert_eq!(after.machine.nics[0].name(), "rocex0000000000000001");
    assert_eq!(after.machine.nics[0].netdevs, ["enx000000000002"]);
    assert_eq!(after.machine.nics[0].ports, before.machine.nics[0].ports);
    let gids = after.rdma["rocex0000000000000001"].ports[&1]
        .gids
        .known()
        .unwrap()
        .clone();
    let expected = [
        "fe80:0000:0000:0000:0200:0000:0000:0001",
        "0000:0000:0000:0000:0000:ffff:c612:0001",
    ];
    assert_eq!(
        gids.iter().map(|gid| gid.gid.as_str()).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(gids[0].netdev, Fact::Known("enx000000000002".to_owned()));
    assert_eq!(
        after.openib_conf.fact,
        Fact::Known("ONBOOT=yes\nNODE_DESC=masked\n".to_owned())
    );
    assert_eq!(after.modules, before.modules);
}

#[test]
fn a_capture_of_a_capture_is_the_same() {
    let (_keep, root) = machine();
    let (first_directory, first) = copy(&root);
    let (second_directory, _second) = copy(&first);
    let relative = |folder: &Path| -> Vec<_> {
        content(folder)
            .into_iter()
            .map(|(path, bytes)| (path.strip_prefix(folder).unwrap().to_owned(), bytes))
            .collect()
    };
    assert_eq!(
        relative(second_directory.path()),
        relative(first_directory.path())
    );
}

#[test]
fn what_cannot_be_read_is_said() {
    let (_keep, root) = machine();
    root.create_dir_all(&format!("/{NIC}/revision")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let left_out = capture(&root, &Root::new(directory.path())).unwrap();
    assert_eq!(left_out.len(), 1);
    assert!(
        left_out[0].contains("revision: not a regular file"),
        "{left_out:?}"
    );
}

#[test]
fn equal_values_stay_equal_and_zeros_stay_zero() {
    let mut masks = Masks::default();
    assert_eq!(masks.mac("b8:59:00:00:00:01"), "02:00:00:00:00:01");
    assert_eq!(masks.mac("B8:59:00:00:00:01"), "02:00:00:00:00:01");
    assert_eq!(masks.mac("b8:59:00:00:00:02"), "02:00:00:00:00:02");
    assert_eq!(masks.mac("00:00:00:00:00:00"), "00:00:00:00:00:00");
    let infiniband = masks.mac("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:2f:3a:41");
    assert_eq!(
        (infiniband.len(), infiniband.ends_with("00:03")),
        (59, true),
        "{infiniband}"
    );
    assert_eq!(masks.guid("0000:0000:0000:0000"), "0000:0000:0000:0000");
    assert_eq!(
        masks.gid("2a00:0000:0000:0000:0000:0000:0000:0001"),
        "2001:0db8:0000:0000:0000:0000:0000:0001"
    );
    assert_eq!(masks.names("eth0 mlx5_0 vxlan0"), "eth0 mlx5_0 vxlan0");
}

#[test]
fn ranges_keep_their_size_and_topology_files_their_shape() {
    assert_eq!(
        resource("0x1000 0x1fff 0x40200"),
        "0x0000000000000000 0x0000000000000fff 0x0000000000040200"
    );
    let text = "<nic><net name=\"mlx5_0\" guid=\"0xb859\" port=\"1\"/></nic>";
    assert_eq!(
        xml(text),
        "<nic><net name=\"mlx5_0\" guid=\"0x0\" port=\"1\"/></nic>"
    );
}

const LINKS: &str = r#"[
 {"ifindex":2,"ifname":"enxb859aabbccdd","flags":["UP"],"mtu":4200,"operstate":"UP","link_type":"ether","address":"b8:59:aa:bb:cc:dd","permaddr":"b8:59:aa:bb:cc:dd","ifalias":"node17 uplink","parentbus":"pci","parentdev":"0000:14:00.0","addr_info":[{"family":"inet","local":"10.11.12.13","prefixlen":24,"scope":"global","label":"node17"},{"family":"inet6","local":"fe80::ba59:aaff:febb:ccdd","prefixlen":64,"scope":"link"}]},
 {"ifindex":9,"ifname":"veth7f7f7f7f","link":"enxb859aabbccdd","flags":["UP"],"mtu":1500,"operstate":"UP","link_type":"ether","addr_info":[]}]"#;
const ROUTES: &str = r#"[{"dst":"default","gateway":"10.11.12.1","dev":"enxb859aabbccdd","protocol":"dhcp","prefsrc":"10.11.12.13"},
 {"dst":"10.11.12.0/24","dev":"enxb859aabbccdd","table":"node17"}]"#;

/// [`machine`], an Ethernet one, with what its tools said.
fn networked() -> (tempfile::TempDir, Root) {
    let (keep, root) = machine();
    let port = format!("/{NIC}/infiniband/rocexb85900000000aaaa/ports/1/link_layer");
    root.put(&port, "Ethernet\n").unwrap();
    for (name, text) in [
        ("ip-address.json", LINKS),
        ("ip-route-4.json", ROUTES),
        ("ip-route-6.json", "not supported"),
        (
            "ip-rule-4.json",
            r#"[{"priority":0,"src":"10.11.12.13","table":"local"}]"#,
        ),
        ("ip-rule-6.json", "[]"),
        (
            "dcb-pfc-enxb859aabbccdd.json",
            r#"{"pfc_cap":8,"prio_pfc":[false,true]}"#,
        ),
        ("dcb-dcbx-enxb859aabbccdd.json", "not supported"),
        (
            "ethtool-fec-enxb859aabbccdd.json",
            r#"[{"ifname":"enxb859aabbccdd","config":["RS"],"active":["RS"],"serial":"node17"}]"#,
        ),
    ] {
        let path = format!("{}/{name}", crate::facts::RECORDED);
        root.put(&path, text).unwrap();
    }
    (keep, root)
}

#[test]
fn recorded_answers_replay_as_the_machine_said_and_name_nobody() {
    let (_keep, root) = networked();
    let (directory, copy) = copy(&root);
    let (before, after) = (read(&root).network, read(&copy).network);
    let links = after.links.fact.known().unwrap();
    let link = &links["enx000000000002"];
    let of = &before.links.fact.known().unwrap()["enxb859aabbccdd"];
    assert_eq!((link.mtu, link.pci), (of.mtu, of.pci));
    let routes = after.routes.fact.known().unwrap();
    assert_eq!(routes.len(), before.routes.fact.known().unwrap().len());
    let own = routes.iter().find(|route| route.table != "main").unwrap();
    assert_eq!(own.table, "table1");
    assert!(own.to.contains(&link.addresses[0].net.addr()), "{own:?}");
    assert_eq!(own.to.prefix_len(), 24);
    let default = routes.iter().find(|route| route.table == "main").unwrap();
    assert!(own.to.contains(&default.gateways[0]));
    assert_eq!(after.rules.fact.known().unwrap().len(), 1);
    let dcb = |network: &crate::facts::network::Network, name: &str| {
        network.interfaces[name].dcb.clone().unwrap()
    };
    let (shown, said) = (
        dcb(&after, "enx000000000002"),
        dcb(&before, "enxb859aabbccdd"),
    );
    assert_eq!(shown.pfc.fact, Fact::Known(vec![1]));
    assert_eq!(
        (shown.pfc.fact, shown.dcbx.fact),
        (said.pfc.fact, said.dcbx.fact)
    );
    let fec = |network: &crate::facts::network::Network, name: &str| {
        network.interfaces[name].fec.clone().unwrap().fact
    };
    assert!(fec(&after, "enx000000000002").known().is_some());
    assert_eq!(
        fec(&after, "enx000000000002"),
        fec(&before, "enxb859aabbccdd")
    );
    let recorded = content(&directory.path().join("run"));
    assert_eq!(recorded.len(), 8);
    for (path, bytes) in recorded {
        let text = format!("{} {}", path.display(), String::from_utf8_lossy(&bytes));
        for secret in SECRETS
            .into_iter()
            .chain(["10.11", "ccdd", "serial", "ifalias"])
        {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[test]
fn recorded_answers_captured_twice_are_the_same() {
    let (_keep, root) = networked();
    let (first, once) = copy(&root);
    let (second, _twice) = copy(&once);
    let relative = |folder: &Path| -> Vec<_> {
        let found = content(&folder.join("run")).into_iter();
        found
            .map(|(path, bytes)| (path.strip_prefix(folder).unwrap().to_owned(), bytes))
            .collect()
    };
    assert_eq!(relative(second.path()), relative(first.path()));
}

#[test]
fn an_answer_that_is_no_json_is_left_out_and_said() {
    let (_keep, root) = networked();
    let path = format!("{}/ip-rule-4.json", crate::facts::RECORDED);
    root.put(&path, "10.11.12.13 lookup node17").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let left_out = capture(&root, &Root::new(directory.path())).unwrap();
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0].starts_with("ip-rule-4.json: "), "{left_out:?}");
    assert!(!left_out[0].contains("node17"));
}
