//! Whether an API server answers: a TCP connection is enough, and asks for no credentials.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use host::facts::network::ApiServer;
use topology::fact::Fact;

/// How long one connection may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// The addresses of the API servers, found before anything is changed: afterwards names may not resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers(Vec<SocketAddr>);

/// The servers of the kubelet's configuration, else the one that the pod was given. Without a kubelet there is none, and
/// nothing to lose.
pub fn servers(
    kubelet: &Fact<Vec<ApiServer>>,
    given: Option<&(String, u16)>,
) -> Result<Option<Servers>, String> {
    let named: Vec<(String, u16)> = match (kubelet, given) {
        (Fact::Known(servers), _) => servers
            .iter()
            .map(|server| (server.host.clone(), server.port))
            .collect(),
        (_, Some(given)) => vec![given.clone()],
        (Fact::Absent, None) => return Ok(None),
        (Fact::Unreadable(why), None) => {
            return Err(format!("which API server to ask is unknown: {why}"));
        }
    };
    let mut addresses = Vec::new();
    let mut failed = String::new();
    for (host, port) in named {
        match (host.as_str(), port).to_socket_addrs() {
            Ok(found) => addresses.extend(found),
            Err(error) => failed = format!("resolve {host}: {error}"),
        }
    }
    if addresses.is_empty() {
        return Err(failed);
    }
    Ok(Some(Servers(addresses)))
}

impl Servers {
    /// Whether one of them takes a connection.
    pub fn reach(&self) -> Result<(), String> {
        let mut failed = String::new();
        for address in &self.0 {
            match TcpStream::connect_timeout(address, DEADLINE) {
                Ok(_) => return Ok(()),
                Err(error) => failed = format!("connect to the API server {address}: {error}"),
            }
        }
        Err(failed)
    }
}
