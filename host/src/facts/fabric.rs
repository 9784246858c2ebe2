//! RDMA ports and network interfaces beyond what pairing needs: subnet manager, GIDs, `P_Key`s, MTU, addresses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::Machine;

use crate::machine::nics::{INFINIBAND, NET};
use crate::parse::{hex, parsed};
use crate::root::Root;

/// What a device says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RdmaDevice {
    /// Firmware version.
    pub firmware: Fact<String>,
    /// Board id (PSID).
    pub board_id: Fact<String>,
    /// Ports by number.
    pub ports: BTreeMap<u32, RdmaPort>,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RdmaPort {
    /// Physical state: `LinkUp`, `Polling`, `Disabled`.
    pub physical_state: Fact<String>,
    /// Local id that the subnet manager gave; 0 on Ethernet.
    pub lid: Fact<u32>,
    /// Local id of the subnet manager; 0 with the port in INIT means that there is none.
    pub sm_lid: Fact<u32>,
    /// GIDs that are set, in the order of their index.
    pub gids: Fact<Vec<Gid>>,
    /// `P_Key`s that are set, by index.
    pub pkeys: Fact<BTreeMap<u32, u16>>,
}

/// An entry of the GID table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gid {
    /// Index: what `NCCL_IB_GID_INDEX` would name.
    pub index: u32,
    /// The GID.
    pub gid: String,
    /// `RoCE v2`, `IB/RoCE v1`.
    pub kind: Fact<String>,
    /// Network interface whose address it is.
    pub netdev: Fact<String>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Netdev {
    /// MTU in bytes.
    pub mtu: Fact<u32>,
    /// Hardware address.
    pub address: Fact<String>,
    /// `up`, `down`, `unknown`.
    pub state: Fact<String>,
    /// Speed in Mb/s; the kernel answers −1 or an error where there is none.
    pub speed_mbps: Fact<u64>,
    /// Bond, bridge or VRF above it.
    pub master: Fact<String>,
}

/// Every RDMA device of the machine, by name.
#[must_use]
pub fn rdma_devices(root: &Root, machine: &Machine) -> BTreeMap<String, RdmaDevice> {
    let names = machine
        .nics
        .iter()
        .filter_map(|nic| Some((nic.rdma.clone()?, nic)));
    let read = names.map(|(name, nic)| {
        let path = format!("{INFINIBAND}/{name}");
        let ports = nic.ports.iter().map(|port| {
            (
                port.number,
                port_facts(root, &format!("{path}/ports/{}", port.number)),
            )
        });
        let ports = ports.collect();
        let firmware = root.read(&format!("{path}/fw_ver"));
        (
            name,
            RdmaDevice {
                firmware,
                board_id: root.read(&format!("{path}/board_id")),
                ports,
            },
        )
    });
    read.collect()
}

fn port_facts(root: &Root, path: &str) -> RdmaPort {
    let lid = |file: &str| parsed(root, &format!("{path}/{file}"), "LID", hex::<u32>);
    RdmaPort {
        physical_state: parsed(
            root,
            &format!("{path}/phys_state"),
            "physical state",
            |text| Some(text.split_once(':')?.1.trim().to_owned()),
        ),
        lid: lid("lid"),
        sm_lid: lid("sm_lid"),
        gids: gids(root, path),
        pkeys: pkeys(root, path),
    }
}

/// Indices of a table's directory, in order.
fn indices(root: &Root, path: &str) -> Fact<Vec<u32>> {
    root.entries(path).map(|names| {
        let mut indices: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        indices.sort_unstable();
        indices
    })
}

/// Entries that are not zero; the kernel answers EINVAL for the attributes of unused ones.
fn gids(root: &Root, path: &str) -> Fact<Vec<Gid>> {
    let entry = |index: u32| {
        let gid = root.text(&format!("{path}/gids/{index}")).ok()?;
        let attribute = |name: &str| root.read(&format!("{path}/gid_attrs/{name}/{index}"));
        let unused = gid.bytes().all(|byte| matches!(byte, b'0' | b':'));
        (!unused).then(|| Gid {
            index,
            gid,
            kind: attribute("types"),
            netdev: attribute("ndevs"),
        })
    };
    indices(root, &format!("{path}/gids"))
        .map(|indices| indices.into_iter().filter_map(entry).collect())
}

fn pkeys(root: &Root, path: &str) -> Fact<BTreeMap<u32, u16>> {
    let entry = |index: u32| {
        let pkey = hex::<u16>(&root.text(&format!("{path}/pkeys/{index}")).ok()?)?;
        (pkey != 0).then_some((index, pkey))
    };
    indices(root, &format!("{path}/pkeys"))
        .map(|indices| indices.into_iter().filter_map(entry).collect())
}

/// Network interfaces of the machine's RDMA devices, by name.
#[must_use]
pub fn netdevs(root: &Root, machine: &Machine) -> BTreeMap<String, Netdev> {
    let names: BTreeSet<_> = machine
        .nics
        .iter()
        .flat_map(|nic| nic.netdevs.iter().cloned())
        .collect();
    names
        .into_iter()
        .map(|name| (name.clone(), netdev(root, &name)))
        .collect()
}

/// One network interface.
#[must_use]
pub fn netdev(root: &Root, name: &str) -> Netdev {
    let path = format!("{NET}/{name}");
    let speed = |text: &str| match text {
        "-1" => Some(None),
        digits => digits.parse().ok().map(Some),
    };
    Netdev {
        mtu: parsed(root, &format!("{path}/mtu"), "MTU", |text| {
            text.parse().ok()
        }),
        address: root.read(&format!("{path}/address")),
        state: root.read(&format!("{path}/operstate")),
        speed_mbps: crate::parse::flatten(parsed(
            root,
            &format!("{path}/speed"),
            "speed in Mb/s",
            speed,
        )),
        master: root.read_link_name(&format!("{path}/master")),
    }
}
