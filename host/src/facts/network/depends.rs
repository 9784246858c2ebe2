//! What the node itself depends on: the API server of the kubelet's configuration, connections with it, and the peers of
//! mounted network file systems and block devices. Of a kubeconfig nothing but the server's address is kept.

mod peers;
mod sockets;

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

pub use peers::Peer;
pub use sockets::Connection;

use crate::facts::Sourced;
use crate::root::Root;

/// Where kubelets keep their configuration: kubeadm, EKS and `OpenShift`, k3s, RKE2, k0s, Talos, `MicroK8s`.
const KUBECONFIGS: [&str; 9] = [
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/kubeconfig",
    "/etc/kubernetes/kubeconfig-kubelet",
    "/var/lib/kubelet/kubeconfig",
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "/var/lib/k0s/kubelet.conf",
    "/var/snap/microk8s/current/credentials/kubelet.config",
    "/var/lib/kubelet/kubeconfig.yaml",
];

/// What the node itself depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Depends {
    /// Servers that the kubelet's configuration names.
    pub api_servers: Sourced<Vec<ApiServer>>,
    /// Established connections of the kubelet with API servers.
    pub connections: Sourced<Vec<Connection>>,
    /// Peers of network file systems and block devices.
    pub peers: Sourced<Vec<Peer>>,
}

/// An API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiServer {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Its addresses, as far as the file and `/etc/hosts` tell; nobody is asked for a name.
    pub addresses: BTreeSet<IpAddr>,
}

pub(super) fn depends(root: &Root) -> Depends {
    let api_servers = api_servers(root);
    let servers = api_servers.fact.known();
    let ports = servers.into_iter().flatten().map(|server| server.port);
    Depends {
        connections: sockets::connections(root, &ports.collect()),
        peers: peers::peers(root),
        api_servers,
    }
}

fn api_servers(root: &Root) -> Sourced<Vec<ApiServer>> {
    let mut servers = BTreeSet::new();
    let mut sources = Vec::new();
    for path in KUBECONFIGS {
        let text = match root.text(path) {
            Ok(text) => text,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Sourced::new(path, Fact::Unreadable(error.chain())),
        };
        let found: Vec<_> = servers_of(&text).collect();
        if found.is_empty() {
            let why = format!("read {path}: no `server: https://…` in it");
            return Sourced::new(path, Fact::Unreadable(why));
        }
        servers.extend(found.into_iter().map(|server| named(root, server)));
        sources.push(path);
    }
    if sources.is_empty() {
        return Sourced::new(KUBECONFIGS.join(", "), Fact::Absent);
    }
    let servers = servers.into_iter().collect();
    Sourced::new(sources.join(", "), Fact::Known(servers))
}

/// `server: https://10.0.0.1:6443`, of each cluster in the file.
fn servers_of(text: &str) -> impl Iterator<Item = ApiServer> + '_ {
    text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("- ");
        let url = line
            .strip_prefix("server:")?
            .trim()
            .trim_matches(['"', '\'']);
        server(url)
    })
}

/// Host and port of a URL; the port of a URL without one is that of its scheme.
fn server(url: &str) -> Option<ApiServer> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let default = if scheme == "http" { 80 } else { 443 };
    let (host, port) = match authority.strip_prefix('[') {
        Some(six) => {
            let (host, after) = six.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    Some(ApiServer {
        host: host.to_owned(),
        port: port.map_or(Some(default), |port| port.parse().ok())?,
        addresses: host.parse().into_iter().collect(),
    })
}

/// The server with the addresses that `/etc/hosts` gives its name.
fn named(root: &Root, mut server: ApiServer) -> ApiServer {
    let hosts = root.text("/etc/hosts").unwrap_or_default();
    for line in hosts.lines() {
        let mut words = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse) else {
            continue;
        };
        if words.any(|name| name == server.host) {
            server.addresses.insert(address);
        }
    }
    server
}

#[cfg(test)]
mod tests;
