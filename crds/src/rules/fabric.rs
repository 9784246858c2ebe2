//! Rules of `fabric` as a whole, of NIC rules and of `tuning`.

use schemars::Schema;

use super::Message::{Cel, Text};
use super::{Rule, attach};

pub(crate) fn fabric(schema: &mut Schema) {
    attach(schema, FABRIC);
}

/// A RoCE packet's headers take up to 96 bytes of the interface's MTU: `iboe_get_mtu` in `include/rdma/ib_addr.h`
/// (GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4).
const FABRIC: &[Rule] = &[
    (
        "!has(self.linkLayer) || self.linkLayer != 'InfiniBand' || !has(self.roce)",
        Text(
            "fabric.roce is set but fabric.linkLayer is InfiniBand: write linkLayer: Ethernet, or remove fabric.roce",
        ),
    ),
    (
        "!has(self.linkLayer) || self.linkLayer != 'Ethernet' || !has(self.infiniband)",
        Text(
            "fabric.infiniband is set but fabric.linkLayer is Ethernet: write linkLayer: InfiniBand, or remove fabric.infiniband",
        ),
    ),
    (
        "!has(self.rdmaMtu) || self.rdmaMtu in [256, 512, 1024, 2048, 4096]",
        Text("fabric.rdmaMtu is no RDMA MTU: write 256, 512, 1024, 2048 or 4096"),
    ),
    (
        "!has(self.rdmaMtu) || !has(self.roce) || !has(self.roce.netdevMtu) || self.rdmaMtu + 96 <= self.roce.netdevMtu",
        Cel(
            "'fabric.rdmaMtu and its headers of up to 96 bytes do not fit into fabric.roce.netdevMtu: write rdmaMtu ' \
             + (self.roce.netdevMtu >= 2144 ? '2048' : self.roce.netdevMtu >= 1120 ? '1024' : \
             self.roce.netdevMtu >= 608 ? '512' : '256') + ' or less, or netdevMtu ' \
             + (self.rdmaMtu > 2048 ? '4192' : self.rdmaMtu > 1024 ? '2144' : self.rdmaMtu > 512 ? '1120' : '608') \
             + ' or more'",
        ),
    ),
];

pub(crate) fn addresses(schema: &mut Schema) {
    attach(
        schema,
        &[
            (
                "self.all(one, self.exists_one(other, other.rail == one.rail))",
                Text("fabric.addresses has a rail twice: write one range for each rail"),
            ),
            (
                "self.all(one, !isCIDR(one.cidr) || self.all(other, other.rail == one.rail || !isCIDR(other.cidr) || !cidr(one.cidr).containsCIDR(other.cidr)))",
                Text(
                    "fabric.addresses has ranges that overlap: write one of its own for each rail, such as 10.10.0.0/16 and 10.11.0.0/16",
                ),
            ),
        ],
    );
}

pub(crate) fn rail_addresses(schema: &mut Schema) {
    attach(
        schema,
        &[(
            "isCIDR(self.cidr)",
            Text(
                "fabric.addresses[].cidr is no range: write network/prefix length, such as 10.10.0.0/16 or fd00:10::/64",
            ),
        )],
    );
}

pub(crate) fn traffic_classes(schema: &mut Schema) {
    attach(schema, TRAFFIC_CLASSES);
}

const TRAFFIC_CLASSES: &[Rule] = &[
    (
        "self.map(one, one.share).sum() <= 100",
        Text(
            "fabric.trafficClasses has shares of more than 100 per cent in all: lower them to 100 or less together",
        ),
    ),
    (
        "self.all(one, self.exists_one(other, other.priority == one.priority))",
        Text("fabric.trafficClasses has a priority twice: give each class its own, 0 to 7"),
    ),
    (
        "self.all(one, self.exists_one(other, other.name == one.name))",
        Text("fabric.trafficClasses has a name twice: give each class its own"),
    ),
];

pub(crate) fn traffic_class(schema: &mut Schema) {
    attach(schema, TRAFFIC_CLASS);
}

const TRAFFIC_CLASS: &[Rule] = &[
    (
        "self.priority <= 7",
        Text("fabric.trafficClasses[].priority is no priority: write 0 to 7"),
    ),
    (
        "self.share >= 1 && self.share <= 100",
        Text("fabric.trafficClasses[].share is no percentage: write 1 to 100"),
    ),
];

pub(crate) fn node_address(schema: &mut Schema) {
    attach(
        schema,
        &[(
            "isCIDR(self.address)",
            Text(
                "config.addresses[].address is no address with prefix length: write one such as 10.10.0.7/16 or fd00:10::7/64",
            ),
        )],
    );
}

pub(crate) fn nic_match(schema: &mut Schema) {
    attach(schema, NIC_MATCH);
}

const NIC_MATCH: &[Rule] = &[
    (
        "!has(self.pci) || self.pci.matches('^[0-9a-f:.]*[*]?$')",
        Text(
            "match.pci is no PCI address: write lower-case domain:bus:device.function, such as 0000:0c:00.0, or its beginning and *",
        ),
    ),
    (
        "!has(self.netdev) || self.netdev.matches('^([A-Za-z0-9._][A-Za-z0-9._-]*)?[*]?$')",
        Text(
            "match.netdev is no interface name: write letters, digits and . _ - only, such as eth2, or its beginning and *",
        ),
    ),
    (
        "!has(self.rdma) || self.rdma.matches('^([A-Za-z0-9._][A-Za-z0-9._-]*)?[*]?$')",
        Text(
            "match.rdma is no RDMA device name: write letters, digits and . _ - only, such as mlx5_0, or its beginning and *",
        ),
    ),
];

pub(crate) fn tuning(schema: &mut Schema) {
    attach(
        schema,
        &[(
            "!has(self.maxReadRequestBytes) || self.maxReadRequestBytes in [128, 256, 512, 1024, 2048, 4096]",
            Text(
                "tuning.maxReadRequestBytes is no size that PCIe knows: write 128, 256, 512, 1024, 2048 or 4096",
            ),
        )],
    );
}
