//! Who else sets MTU, mode and addresses of an interface: systemd-networkd and netplan, `NetworkManager`, wicked, ifupdown,
//! network scripts, the SR-IOV network operator. Read from what they write below `/run` and from their configuration.

use serde::{Deserialize, Serialize};

use crate::root::Root;

/// Another program that configures interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Manager {
    /// systemd-networkd, by a file of its own.
    Networkd,
    /// netplan, through systemd-networkd or `NetworkManager`.
    Netplan,
    /// `NetworkManager`.
    NetworkManager,
    /// wicked.
    Wicked,
    /// ifupdown.
    Ifupdown,
    /// Red Hat's network scripts.
    NetworkScripts,
    /// The SR-IOV network operator.
    SriovOperator,
}

/// Who configures an interface, and what it says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Who.
    pub manager: Manager,
    /// The file that says so.
    pub source: String,
    /// MTU that it sets.
    pub mtu: Option<u32>,
    /// IPoIB mode that it sets.
    pub ipoib_mode: Option<String>,
}

/// Files of `NetworkManager`'s connections.
const CONNECTIONS: [&str; 3] = [
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
];

/// Everybody who configures `name`, sorted. What cannot be read is nobody's: an owner that is missed shows itself when it
/// takes a setting back.
pub(super) fn owners(root: &Root, name: &str, index: Option<u32>) -> Vec<Owner> {
    let by_index = index.map(|index| [networkd(root, index), network_manager(root, index)]);
    let by_name = [
        ifcfg(root, "/etc/sysconfig/network", Manager::Wicked, name),
        ifcfg(
            root,
            "/etc/sysconfig/network-scripts",
            Manager::NetworkScripts,
            name,
        ),
        ifupdown(root, name),
        sriov(root, name),
    ];
    let mut owners: Vec<_> = by_index
        .into_iter()
        .flatten()
        .chain(by_name)
        .flatten()
        .collect();
    owners.sort();
    owners
}

/// Value of `key`, in `[section]` where one is named; quotes fall.
fn value<'a>(text: &'a str, section: Option<&str>, key: &str) -> Option<&'a str> {
    let mut inside = section.is_none();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            inside = section.is_none_or(|section| section.eq_ignore_ascii_case(name));
        } else if let Some((name, value)) = line.split_once('=')
            && inside
            && name.trim() == key
        {
            return Some(value.trim().trim_matches(['"', '\'']));
        }
    }
    None
}

fn number(text: Option<&str>) -> Option<u32> {
    text?.parse().ok().filter(|number| *number > 0)
}

/// `sd-network`'s state file, and the `.network` file that it names.
fn networkd(root: &Root, index: u32) -> Option<Owner> {
    let state = root
        .text(&format!("/run/systemd/netif/links/{index}"))
        .ok()?;
    let managed = value(&state, None, "ADMIN_STATE") != Some("unmanaged");
    let source = value(&state, None, "NETWORK_FILE").filter(|_| managed)?;
    let text = root.text(source).unwrap_or_default();
    Some(Owner {
        manager: if source.contains("netplan") {
            Manager::Netplan
        } else {
            Manager::Networkd
        },
        source: source.to_owned(),
        mtu: number(value(&text, Some("Link"), "MTUBytes")),
        ipoib_mode: value(&text, Some("IPoIB"), "Mode").map(str::to_owned),
    })
}

/// `NetworkManager`'s state file, and the connection that it names by its UUID.
fn network_manager(root: &Root, index: u32) -> Option<Owner> {
    let path = format!("/run/NetworkManager/devices/{index}");
    let state = root.text(&path).ok()?;
    if value(&state, Some("device"), "managed") != Some("true") {
        return None;
    }
    let uuid = value(&state, Some("device"), "connection-uuid");
    let connection = uuid.and_then(|uuid| connection(root, uuid));
    let (source, text) = connection.unwrap_or((path, String::new()));
    let mtu = ["ethernet", "802-3-ethernet", "infiniband"]
        .into_iter()
        .find_map(|section| number(value(&text, Some(section), "mtu")));
    Some(Owner {
        manager: if source.contains("/netplan-") {
            Manager::Netplan
        } else {
            Manager::NetworkManager
        },
        mtu,
        ipoib_mode: value(&text, Some("infiniband"), "transport-mode").map(str::to_owned),
        source,
    })
}

fn connection(root: &Root, uuid: &str) -> Option<(String, String)> {
    let files = CONNECTIONS.into_iter().flat_map(|directory| {
        let names = root.list_dir(directory).unwrap_or_default();
        names
            .into_iter()
            .map(move |name| format!("{directory}/{name}"))
    });
    files
        .filter_map(|path| root.text(&path).ok().map(|text| (path, text)))
        .find(|(_, text)| value(text, Some("connection"), "uuid") == Some(uuid))
}

fn ifcfg(root: &Root, directory: &str, manager: Manager, name: &str) -> Option<Owner> {
    let source = format!("{directory}/ifcfg-{name}");
    let text = root.text(&source).ok()?;
    let mode = value(&text, None, "IPOIB_MODE").or(match value(&text, None, "CONNECTED_MODE") {
        Some("yes") => Some("connected"),
        Some("no") => Some("datagram"),
        _ => None,
    });
    Some(Owner {
        manager,
        mtu: number(value(&text, None, "MTU")),
        ipoib_mode: mode.map(str::to_owned),
        source,
    })
}

/// `interfaces(5)`: what follows `iface NAME` up to the next stanza is about it.
fn ifupdown(root: &Root, name: &str) -> Option<Owner> {
    let directory = "/etc/network/interfaces.d";
    let more = root.list_dir(directory).unwrap_or_default();
    let more = more.iter().map(|file| format!("{directory}/{file}"));
    let paths = std::iter::once("/etc/network/interfaces".to_owned()).chain(more);
    for path in paths {
        let text = root.text(&path).unwrap_or_default();
        if let (true, mtu) = stanza(&text, name) {
            return Some(Owner {
                manager: Manager::Ifupdown,
                source: path,
                mtu,
                ipoib_mode: None,
            });
        }
    }
    None
}

/// Whether an interface has a stanza, and the MTU in it.
fn stanza(text: &str, name: &str) -> (bool, Option<u32>) {
    let mut found = (false, None);
    let mut inside = false;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("iface"), Some(of)) => {
                inside = of == name;
                found.0 |= inside;
            }
            (Some("auto" | "allow-hotplug" | "mapping" | "source"), _) => inside = false,
            (Some("mtu"), Some(mtu)) if inside => found.1 = number(Some(mtu)),
            _ => {}
        }
    }
    found
}

/// The SR-IOV network operator keeps what it applied to each function.
fn sriov(root: &Root, name: &str) -> Option<Owner> {
    let directory = "/etc/sriov-operator/pci";
    root.list_dir(directory).ok()?.iter().find_map(|file| {
        let source = format!("{directory}/{file}");
        let text = root.text(&source).ok()?;
        let applied: serde_json::Value = serde_json::from_str(&text).ok()?;
        let is_of = applied.get("name").and_then(|name| name.as_str()) == Some(name);
        let mtu = applied.get("mtu").and_then(serde_json::Value::as_u64);
        is_of.then_some(Owner {
            manager: Manager::SriovOperator,
            source,
            mtu: mtu
                .and_then(|mtu| u32::try_from(mtu).ok())
                .filter(|mtu| *mtu > 0),
            ipoib_mode: None,
        })
    })
}
