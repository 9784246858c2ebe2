//! Rules of `fabric.infiniband` and `fabric.roce`.

use schemars::Schema;

use super::Message::Text;
use super::{Rule, attach};

pub(crate) fn partitions(schema: &mut Schema) {
    attach(schema, PARTITIONS);
}

const PARTITIONS: &[Rule] = &[
    (
        "self.all(one, one.pkey >= 1 && one.pkey <= 32767)",
        Text(
            "fabric.infiniband.partitions[].pkey is out of range: write the 15-bit key, 1 to 32767 (0x7fff), without the membership bit; for 0x8001 write pkey: 1 and membership: Full",
        ),
    ),
    (
        "self.all(one, self.exists_one(other, other.pkey == one.pkey))",
        Text(
            "fabric.infiniband.partitions has a pkey twice: a port is either a Full or a Limited member, keep one entry",
        ),
    ),
];

pub(crate) fn ipoib(schema: &mut Schema) {
    attach(schema, IPOIB);
}

/// Limits from the kernel's `Documentation/infiniband/ipoib.rst`.
const IPOIB: &[Rule] = &[
    (
        "!has(self.mtu) || (self.mtu >= 576 && self.mtu <= 65520)",
        Text(
            "fabric.infiniband.ipoib.mtu is out of range: write 576 to 4092, or up to 65520 with mode: Connected",
        ),
    ),
    (
        "!has(self.mtu) || self.mtu <= 4092 || (has(self.mode) && self.mode == 'Connected')",
        Text(
            "fabric.infiniband.ipoib.mtu above 4092 needs connected mode: write mode: Connected, or an mtu of at most 4092",
        ),
    ),
];

pub(crate) fn roce(schema: &mut Schema) {
    attach(schema, ROCE);
}

/// 9978 is the largest MTU of a mlx5 interface; below 576 not even the smallest RDMA MTU is of use.
const ROCE: &[Rule] = &[
    (
        "!has(self.netdevMtu) || (self.netdevMtu >= 576 && self.netdevMtu <= 9978)",
        Text(
            "fabric.roce.netdevMtu is out of range: write 576 to 9978; 4200 or more carries an RDMA MTU of 4096",
        ),
    ),
    (
        "!has(self.dscp) || self.dscp <= 63",
        Text("fabric.roce.dscp is no DSCP: write 0 to 63, such as 26"),
    ),
    (
        "!has(self.dscp) || !has(self.trafficClass) || self.trafficClass / 4 == self.dscp",
        Text(
            "fabric.roce.trafficClass does not carry fabric.roce.dscp, which is its upper six bits: write 4 times the dscp, such as 104 (or 106 with ECN) for dscp 26, or only one of the two",
        ),
    ),
    (
        "!has(self.pfcPriorities) || self.pfcPriorities.all(one, one <= 7)",
        Text("fabric.roce.pfcPriorities has an entry that is no priority: write 0 to 7"),
    ),
    (
        "!has(self.ecnPriorities) || self.ecnPriorities.all(one, one <= 7)",
        Text("fabric.roce.ecnPriorities has an entry that is no priority: write 0 to 7"),
    ),
    (
        "!has(self.pfcPriorities) || self.pfcPriorities.all(one, self.pfcPriorities.exists_one(other, other == one))",
        Text("fabric.roce.pfcPriorities has a priority twice: write each once"),
    ),
    (
        "!has(self.ecnPriorities) || self.ecnPriorities.all(one, self.ecnPriorities.exists_one(other, other == one))",
        Text("fabric.roce.ecnPriorities has a priority twice: write each once"),
    ),
];
