//! Interfaces and addresses: `ip -j -d address show` (iproute2 `ip/ipaddress.c`), and `upper_*` of `/sys/class/net`.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use topology::pci::PciAddress;

use super::ask::Question;
use crate::facts::Sourced;
use crate::machine::nics::NET;
use crate::parse::hex;
use crate::root::Root;

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Interface index.
    pub index: u32,
    /// `veth`, `vlan`, `bond`, `bridge`, `ipoib`, `openvswitch`, …; a plain device has none.
    pub kind: Option<String>,
    /// `ether`, `infiniband`, `loopback`.
    pub layer: String,
    /// Whether it was switched on.
    pub up: bool,
    /// Operational state in lower case: `up`, `down`, `unknown`.
    pub state: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// Smallest MTU that the driver takes.
    pub min_mtu: Option<u32>,
    /// Largest MTU that the driver takes.
    pub max_mtu: Option<u32>,
    /// Transmit queues: IPoIB in enhanced mode has many, else one.
    pub transmit_queues: Option<u32>,
    /// PCI function, where the kernel says so.
    pub pci: Option<PciAddress>,
    /// Bond, bridge, VRF or Open vSwitch above it.
    pub master: Option<String>,
    /// The interface that it lies on: of a VLAN, a macvlan, an IPoIB child, the other end of a veth.
    pub lower: Option<String>,
    /// Everything above it, by sysfs.
    pub uppers: BTreeSet<String>,
    /// Of an IPoIB interface.
    pub ipoib: Option<Child>,
    /// Its addresses.
    pub addresses: Vec<Address>,
}

/// What IPoIB says of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// `P_Key`, with the membership bit.
    pub pkey: Option<u16>,
    /// `datagram` or `connected`.
    pub mode: Option<String>,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// Address and prefix length.
    pub net: IpNet,
    /// `global`, `link`, `host`.
    pub scope: String,
    /// Whether it came by DHCP or router advertisement.
    pub dynamic: bool,
    /// Whether another machine on the link has it: IPv6 only.
    pub duplicate: bool,
}

impl Address {
    /// Whether it is of no use beyond its link.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.scope != "global"
    }
}

#[derive(Deserialize)]
struct Shown {
    ifindex: u32,
    ifname: String,
    #[serde(default)]
    flags: Vec<String>,
    mtu: u32,
    min_mtu: Option<u32>,
    max_mtu: Option<u32>,
    num_tx_queues: Option<u32>,
    #[serde(default)]
    operstate: String,
    #[serde(default)]
    link_type: String,
    master: Option<String>,
    link: Option<String>,
    parentdev: Option<String>,
    linkinfo: Option<Info>,
    #[serde(default)]
    addr_info: Vec<ShownAddress>,
}

#[derive(Default, Deserialize)]
struct Info {
    info_kind: Option<String>,
    info_data: Option<Data>,
}

#[derive(Default, Deserialize)]
struct Data {
    key: Option<serde_json::Value>,
    mode: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct ShownAddress {
    local: Option<std::net::IpAddr>,
    #[serde(default)]
    prefixlen: u8,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    dynamic: bool,
    #[serde(default)]
    dadfailed: bool,
}

pub(super) fn question() -> Question<'static> {
    Question {
        program: "ip",
        arguments: vec!["-j", "-d", "address", "show"],
        recorded: "ip-address.json".to_owned(),
    }
}

/// Every interface by name.
#[must_use]
pub fn links(root: &Root) -> Sourced<BTreeMap<String, Link>> {
    let answer = question().ask::<Vec<Shown>>(root);
    let named = |shown: Vec<Shown>| {
        let links = shown.into_iter().map(|one| link(root, one));
        links.collect::<BTreeMap<_, _>>()
    };
    Sourced::new(answer.source, answer.fact.map(named))
}

fn link(root: &Root, shown: Shown) -> (String, Link) {
    let info = shown.linkinfo.unwrap_or_default();
    let path = format!("{NET}/{}", shown.ifname);
    // The kernel writes 0 where a driver names no limit.
    let limit = |mtu: Option<u32>| mtu.filter(|mtu| *mtu > 0);
    let device = root.resolve(&format!("{path}/device")).ok();
    let named = device.and_then(|path| crate::parse::deepest_function(&path));
    let ipoib = (shown.link_type == "infiniband").then(|| child(root, &path, &info));
    let mut addresses: Vec<_> = shown.addr_info.iter().filter_map(address).collect();
    addresses.sort_by_key(|address| address.net);
    let link = Link {
        index: shown.ifindex,
        kind: info.info_kind,
        layer: shown.link_type,
        up: shown.flags.iter().any(|flag| flag == "UP"),
        state: shown.operstate.to_lowercase(),
        mtu: shown.mtu,
        min_mtu: limit(shown.min_mtu),
        max_mtu: limit(shown.max_mtu),
        transmit_queues: shown.num_tx_queues,
        pci: shown.parentdev.and_then(|name| name.parse().ok()).or(named),
        master: shown.master,
        lower: shown.link,
        uppers: uppers(root, &path),
        ipoib,
        addresses,
    };
    (shown.ifname, link)
}

/// Links made by `create_child` show mode and `P_Key` in sysfs, those made by netlink do not.
fn child(root: &Root, path: &str, info: &Info) -> Child {
    let text = |value: &Option<serde_json::Value>| value.as_ref()?.as_str().map(str::to_owned);
    let (key, mode) = info
        .info_data
        .as_ref()
        .map_or((None, None), |data| (text(&data.key), text(&data.mode)));
    let file = |name: &str| root.read(&format!("{path}/{name}")).known().cloned();
    Child {
        pkey: key.or_else(|| file("pkey")).and_then(|text| hex(&text)),
        mode: mode.or_else(|| file("mode")),
    }
}

fn address(shown: &ShownAddress) -> Option<Address> {
    Some(Address {
        net: IpNet::new(shown.local?, shown.prefixlen).ok()?,
        scope: shown.scope.clone(),
        dynamic: shown.dynamic,
        duplicate: shown.dadfailed,
    })
}

fn uppers(root: &Root, path: &str) -> BTreeSet<String> {
    let names = root.list_dir(path).unwrap_or_default();
    let upper = |name: &String| name.strip_prefix("upper_").map(str::to_owned);
    names.iter().filter_map(upper).collect()
}
