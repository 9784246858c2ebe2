//! Where the host is, on the command line: the same for every command. Pure.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use host::root::Root;

use crate::compat::matrix::{self, MatrixError};
use crate::settings::Settings;

/// Where the host is. Every path but --root is the host's own, below the root.
#[derive(Clone, Debug, Args)]
pub struct HostArgs {
    /// Root of the host: / on the host itself, /host in the agent's pod.
    #[arg(long, global = true, default_value = "/")]
    root: PathBuf,
    /// The kubelet's directory.
    #[arg(long, global = true, default_value = "/var/lib/kubelet")]
    kubelet_root: String,
    /// Directory for the CDI specification.
    #[arg(long, global = true, default_value = "/var/run/cdi")]
    cdi_dir: String,
    /// PCI vendor (hex) whose accelerators count as GPUs; may be repeated.
    #[arg(long = "gpu-vendor", global = true, value_parser = vendor, default_values = ["10de"])]
    gpu_vendors: Vec<u16>,
    /// The chroot program, by which the host's own modprobe and rmmod are run.
    #[arg(long, global = true, default_value = "chroot")]
    chroot: PathBuf,
    /// Compatibility table (YAML) in the place of the built-in one; a path of this program's own file system.
    #[arg(long, global = true, value_name = "FILE")]
    compat: Option<PathBuf>,
    /// Addresses of the Node object, separated by commas: interfaces that have one are not touched.
    #[arg(long, global = true, env = "NODE_IPS", value_delimiter = ',')]
    node_ip: Vec<IpAddr>,
    /// API server that must stay reachable while the network is changed, where the kubelet's configuration names none.
    #[arg(long, global = true, env = "KUBERNETES_SERVICE_HOST")]
    api_server_host: Option<String>,
    /// Port of that API server.
    #[arg(
        long,
        global = true,
        env = "KUBERNETES_SERVICE_PORT",
        default_value_t = 443
    )]
    api_server_port: u16,
}

fn vendor(text: &str) -> Result<u16, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u16::from_str_radix(digits, 16)
        .map_err(|_| format!("`{text}` is no PCI vendor: write four hex digits, as in 10de"))
}

impl HostArgs {
    /// The same as settings.
    pub fn settings(&self) -> Result<Settings, MatrixError> {
        let Self {
            root,
            kubelet_root,
            cdi_dir,
            gpu_vendors,
            chroot,
            compat,
            node_ip,
            api_server_host,
            api_server_port,
        } = self.clone();
        let gpu_vendors = gpu_vendors.into_iter().collect();
        Ok(Settings {
            root: Root::new(root),
            kubelet_root,
            cdi_dir,
            gpu_vendors,
            chroot,
            compat: Arc::new(matrix::load(compat.as_deref())?),
            node_addresses: node_ip.into_iter().collect(),
            api_server: api_server_host.map(|host| (host, api_server_port)),
        })
    }
}
