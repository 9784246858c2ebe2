//! Interfaces and NICs for tests of what is planned on them.

use host::facts::network::Link;
use topology::fact::Fact;
use topology::machine::{LinkLayer, Machine, Nic, NicRole, Port, PortState};

/// An Ethernet interface that is up, as mlx5 has it.
pub(crate) fn link(index: u32) -> Link {
    Link {
        index,
        layer: "ether".to_owned(),
        up: true,
        state: "up".to_owned(),
        mtu: 1500,
        min_mtu: Some(68),
        max_mtu: Some(9978),
        ..Link::default()
    }
}

/// An Ethernet NIC `mlx5_<index>` with one interface.
pub(crate) fn nic(index: usize, netdev: &str) -> Nic {
    let port = Port {
        number: 1,
        state: Fact::Known(PortState::Active),
        link_layer: Fact::Known(LinkLayer::Ethernet),
        rate_mbps: Fact::Known(400_000),
    };
    Nic {
        index,
        rdma: Some(format!("mlx5_{index}")),
        pci: format!("0000:{:02x}:00.0", index + 1).parse().ok(),
        numa: Fact::Absent,
        netdevs: vec![netdev.to_owned()],
        ports: vec![port],
        physfn: None,
        bond: false,
        uverbs: Fact::Absent,
        ids: Fact::Absent,
        role: NicRole::Compute,
    }
}

/// A machine with these NICs and nothing else.
pub(crate) fn machine_with(nics: Vec<Nic>) -> Machine {
    Machine {
        nics,
        ..Machine::default()
    }
}
