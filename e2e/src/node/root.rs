//! The node's root: an overlay over `/` whose upper layer is the node's disk, a tmpfs that outlives its reboots.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::NodeSpec;
use crate::{cmd, paths, progress};

const NONE: Option<&str> = None;

/// Makes the node's disk, unless it is there: called by the supervisor, whose mount namespace holds it.
pub fn disk(work: &Path, spec: &NodeSpec) -> Result<()> {
    let folder = work.join(&spec.name);
    for part in ["kubelet", "containerd", "cni", "disk", "machine"] {
        make(&folder.join(part))?;
    }
    if !folder.join("disk/up").exists() {
        mount_at(
            Some("tmpfs"),
            &folder.join("disk"),
            Some("tmpfs"),
            MsFlags::empty(),
            Some("size=2g"),
        )?;
        for part in ["up", "overlay", "root"] {
            make(&folder.join("disk").join(part))?;
        }
    }
    Ok(())
}

/// Moves this process, alone in its mount namespace, into the node's root.
pub(super) fn enter(work: &Path, spec: &NodeSpec) -> Result<()> {
    let disk = work.join(&spec.name).join("disk");
    let root = disk.join("root");
    let options = format!(
        "lowerdir=/,upperdir={0}/up,workdir={0}/overlay",
        disk.display()
    );
    mount_at(
        Some("overlay"),
        &root,
        Some("overlay"),
        MsFlags::empty(),
        Some(&options),
    )?;
    mount_at(
        Some("proc"),
        &root.join("proc"),
        Some("proc"),
        MsFlags::empty(),
        NONE,
    )?;
    bind(Path::new("/sys"), &root.join("sys"))?;
    devices(&root.join("dev"))?;
    for folder in ["run", "tmp"] {
        mount_at(
            Some("tmpfs"),
            &root.join(folder),
            Some("tmpfs"),
            MsFlags::empty(),
            NONE,
        )?;
    }
    for folder in [
        work.to_owned(),
        paths::cache()?,
        paths::repository().canonicalize()?,
    ] {
        let inside = root.join(folder.strip_prefix("/").unwrap_or(&folder));
        make(&inside)?;
        bind(&folder, &inside)?;
    }
    pivot(&root)?;
    for folder in ["/run/lock", "/run/cdi", "/var/lib/kubelet"] {
        make(Path::new(folder))?;
    }
    std::fs::write("/etc/hostname", format!("{}\n", spec.name)).context("write /etc/hostname")
}

fn devices(dev: &Path) -> Result<()> {
    mount_at(
        Some("tmpfs"),
        dev,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("mode=755"),
    )?;
    for name in [
        "null", "zero", "full", "random", "urandom", "tty", "kmsg", "fuse",
    ] {
        let real = Path::new("/dev").join(name);
        if real.exists() {
            cmd::run(cmd::command("cp", ["-a"]).arg(&real).arg(dev.join(name)))?;
        }
    }
    for folder in ["pts", "shm", "mqueue", "infiniband"] {
        make(&dev.join(folder))?;
    }
    mount_at(
        Some("devpts"),
        &dev.join("pts"),
        Some("devpts"),
        MsFlags::empty(),
        Some("newinstance,ptmxmode=0666"),
    )?;
    mount_at(
        Some("tmpfs"),
        &dev.join("shm"),
        Some("tmpfs"),
        MsFlags::empty(),
        NONE,
    )?;
    let links = [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
    ];
    let links = links
        .into_iter()
        .chain([("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")]);
    for (name, target) in links {
        symlink(target, dev.join(name)).with_context(|| format!("link /dev/{name}"))?;
    }
    Ok(())
}

fn pivot(root: &Path) -> Result<()> {
    let old = root.join(".old");
    make(&old)?;
    nix::unistd::pivot_root(root, &old).context("change the root")?;
    std::env::set_current_dir("/").context("go to the new root")?;
    umount2("/.old", MntFlags::MNT_DETACH).context("let go of the old root")?;
    let _ = std::fs::remove_dir("/.old");
    Ok(())
}

/// Shares every mount with the containers below: containerd refuses `HostToContainer` mounts under a private root.
pub(super) fn share() -> Result<()> {
    mount_at(
        NONE,
        Path::new("/"),
        NONE,
        MsFlags::MS_SHARED | MsFlags::MS_REC,
        NONE,
    )
}

/// Waits for the cable, then sets the node's address and routes.
pub(super) fn network(spec: &NodeSpec) -> Result<()> {
    progress::wait_for("eth0", 20, || {
        cmd::exec("ip", ["link", "show", "eth0"]).ok()
    })?;
    let address = format!("{}/24", super::address(spec.index));
    cmd::exec("ip", ["link", "set", "lo", "up"])?;
    cmd::exec("ip", ["addr", "add", &address, "dev", "eth0"])?;
    cmd::exec("ip", ["link", "set", "eth0", "up"])?;
    cmd::exec(
        "ip",
        [
            "route",
            "add",
            "default",
            "via",
            crate::control_plane::ADDRESS,
        ],
    )?;
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        .context("switch on ip_forward in the node's namespace")
}

/// Creates a folder and those above it.
pub(super) fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))
}

/// Shows what is at one place at another one too.
pub(super) fn bind(from: &Path, to: &Path) -> Result<()> {
    mount_at(
        Some(&from.display().to_string()),
        to,
        NONE,
        MsFlags::MS_BIND | MsFlags::MS_REC,
        NONE,
    )
}

/// `mount(2)` with the place in the error.
pub(super) fn mount_at(
    source: Option<&str>,
    target: &Path,
    kind: Option<&str>,
    flags: MsFlags,
    data: Option<&str>,
) -> Result<()> {
    mount(source, target, kind, flags, data).with_context(|| format!("mount {}", target.display()))
}

/// A folder of the node's work folder, as the node sees it: at the same path.
#[must_use]
pub(super) fn own(work: &Path, spec: &NodeSpec, part: &str) -> PathBuf {
    work.join(&spec.name).join(part)
}
