//! Debian packages that the cluster needs; what is missing is installed, and said.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{cmd, progress};

/// A file that proves the package, and the package.
const NEEDED: &[(&str, &str)] = &[
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("/usr/sbin/nft", "nftables"),
    ("/usr/sbin/ip", "iproute2"),
    ("/usr/sbin/conntrack", "conntrack"),
    ("/usr/include/seccomp.h", "libseccomp-dev"),
    ("/usr/bin/pkg-config", "pkg-config"),
    ("/usr/bin/busybox", "busybox-static"),
    ("/usr/bin/mmdebstrap", "mmdebstrap"),
    ("/usr/bin/openssl", "openssl"),
    ("/usr/bin/gpg", "gnupg"),
    ("/usr/bin/unshare", "util-linux"),
    ("/usr/bin/gcc", "gcc"),
    ("/usr/include/stdlib.h", "libc6-dev"),
];

/// Makes sure that everything is there.
///
/// # Errors
/// Without root, without apt, or when apt fails; the text says what to install by hand.
pub fn ensure() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "this needs root (namespaces, mounts, containerd): run it again as root or with sudo"
        );
    }
    ensure_all(NEEDED)
}

/// Makes sure of more: for each package a file that proves it.
///
/// # Errors
/// As [`ensure`].
pub fn ensure_all(needed: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<_> = needed
        .iter()
        .filter(|(file, _)| !present(file))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "not a Debian machine: install the equivalents of {} by hand",
            missing.join(" ")
        );
    }
    progress::step(&format!("install {}", missing.join(" ")), || {
        install(&missing)
    })
}

fn present(file: &str) -> bool {
    // On a machine without merged /usr the same file lies under /sbin or /bin.
    Path::new(file).exists() || Path::new(file.trim_start_matches("/usr")).exists()
}

fn install(missing: &[&str]) -> Result<()> {
    cmd::exec("apt-get", ["update", "-qq"])?;
    let mut command = cmd::command(
        "apt-get",
        ["install", "-y", "-qq", "--no-install-recommends"],
    );
    cmd::run(
        command
            .args(missing)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
