use super::*;
use crate::action::{Netdev, Transport};

fn shown(change: &FabricChange) -> String {
    let (program, arguments) = command(change).unwrap();
    format!("{program} {}", arguments.join(" "))
}

fn eth0() -> Netdev {
    Netdev {
        name: "eth0".to_owned(),
        index: 2,
    }
}

fn ib0() -> Netdev {
    Netdev {
        name: "ib0".to_owned(),
        index: 4,
    }
}

#[test]
fn links_and_addresses() {
    let mtu = FabricChange::Mtu {
        netdev: eth0(),
        mtu: 9000,
    };
    assert_eq!(shown(&mtu), "ip link set dev eth0 mtu 9000");
    let up = FabricChange::Up {
        netdev: eth0(),
        up: true,
    };
    assert_eq!(shown(&up), "ip link set dev eth0 up");
    let address = |present| FabricChange::Address {
        netdev: eth0(),
        address: "10.0.0.7/16".parse().unwrap(),
        present,
    };
    assert_eq!(
        [true, false].map(|present| shown(&address(present))),
        [
            "ip address add 10.0.0.7/16 dev eth0",
            "ip address delete 10.0.0.7/16 dev eth0"
        ]
    );
}

#[test]
fn ipoib() {
    let mode = FabricChange::IpoibMode {
        netdev: ib0(),
        mode: Transport::Connected,
    };
    assert_eq!(
        shown(&mode),
        "ip link set dev ib0 type ipoib mode connected"
    );
    let child = |pkey, present| FabricChange::Partition {
        netdev: ib0(),
        pkey,
        present,
    };
    assert_eq!(
        shown(&child(0x8012, true)),
        "ip link add link ib0 name ib0.8012 type ipoib pkey 0x8012"
    );
    assert_eq!(
        shown(&child(0x0012, false)),
        "ip link delete dev ib0.8012",
        "the kernel names a limited member's child by the full key"
    );
}

#[test]
fn priorities() {
    let pfc = FabricChange::Pfc {
        netdev: eth0(),
        priorities: [3].into(),
    };
    assert_eq!(
        shown(&pfc),
        "dcb pfc set dev eth0 prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off"
    );
    let algorithms = (0..8).map(|class| {
        if matches!(class, 0 | 3) {
            "ets"
        } else {
            "strict"
        }
    });
    let table = Ets {
        priority_classes: vec![0, 0, 0, 3, 0, 0, 0, 0],
        algorithms: algorithms.map(str::to_owned).collect(),
        shares: vec![50, 0, 0, 50, 0, 0, 0, 0],
    };
    let ets = FabricChange::Ets {
        netdev: eth0(),
        table,
    };
    assert_eq!(
        shown(&ets),
        "dcb ets set dev eth0 tc-tsa 0:ets 1:strict 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0 prio-tc 0:0 1:0 2:0 3:3 4:0 5:0 6:0 7:0"
    );
}

#[test]
fn entries_of_the_dscp_map() {
    let entry = FabricChange::Dscp {
        netdev: eth0(),
        dscp: 26,
        priority: Some(3),
    };
    assert_eq!(shown(&entry), "dcb app replace dev eth0 dscp-prio 26:3");
    let (program, words) = without_dscp("eth0", 26, 3);
    assert_eq!(
        format!("{program} {}", words.join(" ")),
        "dcb app del dev eth0 dscp-prio 26:3"
    );
}
