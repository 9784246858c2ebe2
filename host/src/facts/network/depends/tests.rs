use super::super::tests::tree;
use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

const KUBECONFIG: &str = "clusters:\n- cluster:\n    certificate-authority-data: QUJD\n    server: https://api.example:6443\n  name: default\nusers:\n- user: {token: secret}\n";

#[test]
fn only_the_server_of_a_kubeconfig_is_kept() {
    let (_keep, root) = tree(&[
        ("etc/kubernetes/kubelet.conf", KUBECONFIG),
        (
            "etc/hosts",
            "127.0.0.1 localhost\n10.0.0.1 api.example api # VIP\n",
        ),
    ]);
    let depends = depends(&root);
    assert_eq!(
        depends.api_servers.fact,
        Fact::Known(vec![ApiServer {
            host: "api.example".to_owned(),
            port: 6443,
            addresses: [ip("10.0.0.1")].into(),
        }])
    );
    assert_eq!(depends.api_servers.source, "/etc/kubernetes/kubelet.conf");
    let json = serde_json::to_string(&depends).unwrap();
    assert!(!json.contains("secret") && !json.contains("QUJD"));
}

#[test]
fn servers_may_be_addresses_of_either_family() {
    let parsed = |url: &str| server(url).map(|server| (server.host, server.port));
    assert_eq!(
        parsed("https://[fd00::1]:6443/"),
        Some(("fd00::1".to_owned(), 6443))
    );
    assert_eq!(
        parsed("https://10.0.0.1"),
        Some(("10.0.0.1".to_owned(), 443))
    );
    assert_eq!(parsed("http://[fd00::1]"), Some(("fd00::1".to_owned(), 80)));
    assert_eq!(parsed("https://api:high"), None);
    assert_eq!(parsed("api:6443"), None);
}

#[test]
fn a_kubeconfig_without_a_server_is_not_none_at_all() {
    let (_keep, root) = tree(&[("var/lib/kubelet/kubeconfig", "clusters: []\n")]);
    assert!(
        matches!(depends(&root).api_servers.fact, Fact::Unreadable(why) if why.contains("no `server"))
    );
    let (_keep, root) = tree(&[]);
    assert_eq!(depends(&root).api_servers.fact, Fact::Absent);
}

#[test]
fn connections_are_those_of_the_kubelet() {
    // 10.0.0.5:45000 → 10.0.0.1:6443, 10.0.0.2 → our 10250, one that listens, one of somebody else, one by loopback.
    let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
        0: 0500000A:AFC8 0100000A:192B 01 00000000:00000000\n\
        1: 0500000A:280A 0200000A:D431 01 00000000:00000000\n\
        2: 00000000:280A 00000000:0000 0A 00000000:00000000\n\
        3: 0500000A:AFC9 0900000A:01BB 01 00000000:00000000\n\
        4: 0100007F:AFC8 0100007F:192B 01 00000000:00000000\n";
    let six = "  sl  local_address\n   0: 0000000000000000FFFF00000600000A:280A 0000000000000000FFFF00000700000A:D431 01 0\n";
    let (_keep, root) = tree(&[
        ("etc/kubernetes/kubelet.conf", KUBECONFIG),
        ("proc/1/net/tcp", table),
        ("proc/1/net/tcp6", six),
    ]);
    let connection = |local: &str, remote: &str, port| Connection {
        local: ip(local),
        remote: ip(remote),
        port,
    };
    assert_eq!(
        depends(&root).connections.fact,
        Fact::Known(vec![
            connection("10.0.0.5", "10.0.0.1", 6443),
            connection("10.0.0.5", "10.0.0.2", 10250),
            connection("10.0.0.6", "10.0.0.7", 10250),
        ])
    );
}

#[test]
fn peers_of_every_kind_are_found() {
    let mounts = "36 35 0:40 / / rw - ext4 /dev/sda1 rw\n\
        40 36 0:41 / /data rw - nfs4 store:/data rw,vers=4.2,addr=10.1.0.1\n\
        41 36 0:42 / /ceph rw - ceph 10.2.0.1:6789,10.2.0.2:6789:/vol rw,name=a\n\
        42 36 0:43 / /ceph2 rw - ceph a@f.fs=/ rw,mon_addr=10.2.0.3:6789/10.2.0.4:6789\n\
        43 36 0:44 / /lustre rw - lustre 10.3.0.1@o2ib,10.3.0.2@tcp:10.3.0.3@o2ib:/fs rw\n";
    let (_keep, root) = tree(&[
        ("proc/1/mountinfo", mounts),
        (
            "sys/class/iscsi_connection/connection1:0/address",
            "10.4.0.1\n",
        ),
        ("sys/class/nvme/nvme0/address", "0000:01:00.0\n"),
        (
            "sys/class/nvme/nvme1/address",
            "traddr=10.5.0.1,trsvcid=4420\n",
        ),
        (
            "sys/bus/rbd/devices/0/config_info",
            "10.6.0.1:6789 name=admin pool img -\n",
        ),
    ]);
    let Fact::Known(peers) = depends(&root).peers.fact else {
        panic!()
    };
    let shown: Vec<_> = peers
        .iter()
        .map(|peer| format!("{} {}", peer.address, peer.what))
        .collect();
    assert_eq!(
        shown,
        [
            "10.1.0.1 nfs4 at /data",
            "10.2.0.1 ceph at /ceph",
            "10.2.0.2 ceph at /ceph",
            "10.2.0.3 ceph at /ceph2",
            "10.2.0.4 ceph at /ceph2",
            "10.3.0.1 lustre at /lustre",
            "10.3.0.2 lustre at /lustre",
            "10.3.0.3 lustre at /lustre",
            "10.4.0.1 iSCSI connection1:0",
            "10.5.0.1 NVMe nvme1",
            "10.6.0.1 RBD 0",
        ]
    );
}

#[test]
fn a_mount_whose_peer_is_unknown_is_not_without_one() {
    let (_keep, root) = tree(&[(
        "proc/1/mountinfo",
        "40 36 0:41 / /data rw - nfs store:/data rw\n",
    )]);
    assert!(
        matches!(depends(&root).peers.fact, Fact::Unreadable(why) if why.ends_with("nfs at /data"))
    );
}
