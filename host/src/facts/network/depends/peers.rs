//! Peers of what is mounted over the network: `/proc/1/mountinfo` (`proc_pid_mountinfo(5)`), and `/sys` for iSCSI, `NVMe` over
//! fabrics and RBD.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use crate::facts::Sourced;
use crate::root::{Root, RootError};

/// Mounts of the machine's first process.
const MOUNTS: &str = "/proc/1/mountinfo";

/// A machine that something here is mounted from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// What is there: `nfs4 at /data`.
    pub what: String,
}

pub(super) fn peers(root: &Root) -> Sourced<Vec<Peer>> {
    let source = format!("{MOUNTS}, /sys/class/{{iscsi_connection,nvme}}, /sys/bus/rbd");
    let mut peers = BTreeSet::new();
    let read = mounts(root, &mut peers)
        .and_then(|()| devices(root, &mut peers).map_err(|error| error.chain()));
    let fact = match read {
        Ok(()) => Fact::Known(peers.into_iter().collect()),
        Err(why) => Fact::Unreadable(why),
    };
    Sourced::new(source, fact)
}

/// A tree without processes has no mounts. The table of a node with many containers is long: it is read line by line.
fn mounts(root: &Root, peers: &mut BTreeSet<Peer>) -> Result<(), String> {
    let (found, unknown) = (RefCell::new(Vec::new()), RefCell::new(None));
    let note = |line: &str| {
        let Some((kind, place, addresses)) = mount(line) else {
            return false;
        };
        let what = format!("{kind} at {place}");
        if addresses.is_empty() {
            *unknown.borrow_mut() = Some(format!("read {MOUNTS}: no address of the {what}"));
        }
        let peer = |address| Peer {
            address,
            what: what.clone(),
        };
        found.borrow_mut().extend(addresses.into_iter().map(peer));
        unknown.borrow().is_some()
    };
    match root.any_line(MOUNTS, note) {
        Ok(_) => {}
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error.chain()),
    }
    peers.extend(found.into_inner());
    unknown.into_inner().map_or(Ok(()), Err)
}

/// Kind, place and addresses of a mount over the network.
fn mount(line: &str) -> Option<(&str, &str, Vec<IpAddr>)> {
    let (before, after) = line.split_once(" - ")?;
    let place = before.split_whitespace().nth(4)?;
    let mut words = after.split_whitespace();
    let (kind, source, options) = (words.next()?, words.next()?, words.next().unwrap_or(""));
    let option = |name: &'static str| {
        let options = options.split(',');
        options.filter_map(move |option| option.strip_prefix(name)?.strip_prefix('='))
    };
    let found: Vec<IpAddr> = match kind {
        "nfs" | "nfs4" | "cifs" | "smb3" => option("addr").filter_map(address).collect(),
        "ceph" => {
            let monitors = option("mon_addr").flat_map(|list| list.split('/'));
            let (listed, _) = source.rsplit_once(":/").unwrap_or(("", ""));
            monitors
                .chain(listed.split(','))
                .filter_map(address)
                .collect()
        }
        // `10.0.0.1@o2ib,10.0.0.2@tcp:10.0.0.3@o2ib:/fs`
        "lustre" => {
            let nids = source
                .split([':', ','])
                .filter_map(|nid| nid.split_once('@'));
            nids.filter_map(|(host, _)| address(host)).collect()
        }
        _ => return None,
    };
    Some((kind, place, found))
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let plain = text.trim_matches(['[', ']']).parse().ok();
    plain.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
}

fn devices(root: &Root, peers: &mut BTreeSet<Peer>) -> Result<(), RootError> {
    each(
        root,
        "/sys/class/iscsi_connection",
        "address",
        |name, text| {
            peers.extend(address(text).map(|address| Peer {
                address,
                what: format!("iSCSI {name}"),
            }));
        },
    )?;
    each(root, "/sys/class/nvme", "address", |name, text| {
        let traddr = text
            .split(',')
            .find_map(|part| part.strip_prefix("traddr="));
        peers.extend(traddr.and_then(address).map(|address| Peer {
            address,
            what: format!("NVMe {name}"),
        }));
    })?;
    each(root, "/sys/bus/rbd/devices", "config_info", |name, text| {
        let monitors = text.split_whitespace().next().unwrap_or_default();
        peers.extend(monitors.split(',').filter_map(address).map(|address| Peer {
            address,
            what: format!("RBD {name}"),
        }));
    })
}

/// Reads one attribute of every entry of a class; a class or an attribute that is not there has nothing.
fn each(
    root: &Root,
    class: &str,
    attribute: &str,
    mut note: impl FnMut(&str, &str),
) -> Result<(), RootError> {
    let names = match root.list_dir(class) {
        Err(error) if error.is_not_found() => return Ok(()),
        names => names?,
    };
    for name in names {
        match root.text(&format!("{class}/{name}/{attribute}")) {
            Ok(text) => note(&name, &text),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
