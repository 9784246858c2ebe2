//! The GPU driver, the RDMA stack's version and settings, and what stands between them.

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::Sourced;
use crate::parse::checked;
use crate::root::{Root, fact};

/// Version lines of the loaded GPU driver.
pub(crate) const GPU_DRIVER: &str = "/proc/driver/nvidia/version";
/// Symbols of the kernel and its modules.
pub(crate) const KALLSYMS: &str = "/proc/kallsyms";
/// What `ib_core` of MLNX_OFED and DOCA-OFED exports for peer memory; the inbox one does not.
pub(crate) const PEER_MEMORY: &str = "ib_register_peer_memory_client";
/// Settings that openibd reads.
pub(crate) const OPENIB_CONF: &str = "/etc/infiniband/openib.conf";

/// The loaded GPU driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuDriver {
    /// Version: `570.86.15`.
    pub version: String,
    /// Which kernel modules; DMA-BUF needs the open ones.
    pub flavour: Flavour,
}

/// Flavours of NVIDIA's kernel modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Flavour {
    /// `nvidia-open`.
    Open,
    /// The closed modules.
    Proprietary,
}

/// The loaded GPU driver.
#[must_use]
pub fn gpu_driver(root: &Root) -> Sourced<GpuDriver> {
    Sourced::new(
        GPU_DRIVER,
        checked(
            root.read(GPU_DRIVER),
            GPU_DRIVER,
            "NVRM version",
            parse_gpu_driver,
        ),
    )
}

/// `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build …`, or
/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu …`.
fn parse_gpu_driver(text: &str) -> Option<GpuDriver> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("NVRM version:"))?;
    let (before, after) = line.split_once("Kernel Module")?;
    let flavour = if before.trim_end().ends_with("Open") {
        Flavour::Open
    } else {
        Flavour::Proprietary
    };
    let version = after
        .split_whitespace()
        .find(|word| is_version(word))?
        .to_owned();
    Some(GpuDriver { version, flavour })
}

fn is_version(word: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    word.contains('.') && word.split('.').all(part)
}

/// Whether the peer-memory symbol is there: the third word of a line, whole.
#[must_use]
pub fn peer_memory_symbol(root: &Root) -> Sourced<bool> {
    let found = root.any_line(KALLSYMS, |line| {
        line.split_whitespace().nth(2) == Some(PEER_MEMORY)
    });
    Sourced::new(KALLSYMS, fact(found))
}

/// Clients that have registered with the peer-memory interface: `nv_mem` is nvidia-peermem.
#[must_use]
pub fn peer_memory_clients(root: &Root) -> Sourced<Vec<String>> {
    let path = "/sys/kernel/mm/memory_peers";
    Sourced::new(path, root.entries(path))
}

/// Version of the installed MLNX_OFED or DOCA-OFED kernel part, as it is written; its form has changed.
#[must_use]
pub fn ofed_version(root: &Root) -> Sourced<String> {
    let path = "/sys/module/mlx_compat/version";
    Sourced::new(path, root.read(path))
}

/// `openib.conf`, byte for byte: openibd sources it as shell, so it is not interpreted here.
#[must_use]
pub fn openib_conf(root: &Root) -> Sourced<String> {
    let fact = match fact(root.bytes(OPENIB_CONF)) {
        Fact::Known(bytes) => String::from_utf8(bytes).map_or_else(
            |_| Fact::Unreadable(format!("read {OPENIB_CONF}: not UTF-8")),
            Fact::Known,
        ),
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why),
    };
    Sourced::new(OPENIB_CONF, fact)
}

/// Who reads `openib.conf`, and when that was last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Openibd {
    /// Whether `/etc/infiniband` is there.
    pub directory: bool,
    /// Whether `/etc/init.d/openibd` is there.
    pub program: bool,
    /// systemd's invocation id of `openibd.service`: a restart gives another. systemd keeps it as the target of a link
    /// (`systemd.exec(5)`, `$INVOCATION_ID`).
    pub invocation: Fact<String>,
}

/// Who reads `openib.conf`.
#[must_use]
pub fn openibd(root: &Root) -> Openibd {
    Openibd {
        directory: root.resolve("/etc/infiniband").is_ok(),
        program: root.resolve("/etc/init.d/openibd").is_ok(),
        invocation: fact(root.link_target("/run/systemd/units/invocation:openibd.service")),
    }
}
