//! What a node shows of its machine: `/sys`, `/proc/driver/nvidia`, `/proc/modules`, boot id, device nodes, `modprobe`.
//!
//! A container has a fresh `/proc` of its own; a pod sees these through a hostPath of `/` or of the file.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::{Context, Result};
use nix::mount::MsFlags;

use super::NodeSpec;
use super::root::{bind, make, mount_at};
use crate::cmd;
use crate::machines::Shown;

const TREE: &str = "/run/machine/tree";
/// Parts of `/sys/class` that belong to a machine's PCI devices.
const MACHINE_CLASSES: &[&str] = &[
    "net",
    "drm",
    "pci_bus",
    "infiniband",
    "infiniband_verbs",
    "infiniband_mad",
    "infiniband_cm",
];

/// Makes the node look like the machine.
pub(super) fn show(spec: &NodeSpec, machine: Option<&Shown>) -> Result<()> {
    make(Path::new("/run/machine"))?;
    boot_id(&spec.boot_id)?;
    modprobe()?;
    if let Some(machine) = machine {
        let tree = Path::new(TREE);
        machine.write(&spec.name, tree)?;
        sys(tree)?;
        proc(tree)?;
        device_nodes(machine)?;
        topology_file(machine)?;
    }
    if spec.two_numa_nodes {
        two_numa_nodes()
    } else {
        Ok(())
    }
}

fn boot_id(id: &str) -> Result<()> {
    write("/run/machine/boot_id", &format!("{id}\n"))?;
    bind(
        Path::new("/run/machine/boot_id"),
        Path::new("/proc/sys/kernel/random/boot_id"),
    )
}

/// Composes a `/sys` whose PCI, RDMA and net parts are the machine's, the rest the real one's.
fn sys(tree: &Path) -> Result<()> {
    let stage = Path::new("/run/machine/sys");
    make(stage)?;
    mount_at(Some("tmpfs"), stage, Some("tmpfs"), MsFlags::empty(), None)?;
    let ours = |folder: &str, name: &str| match folder {
        "" => ["bus", "class", "devices", "module"].contains(&name),
        "bus" => name == "pci",
        "class" => MACHINE_CLASSES.contains(&name),
        _ => name.starts_with("pci"),
    };
    for folder in ["", "bus", "class", "devices"] {
        show_real(folder, stage, |name| !ours(folder, name))?;
    }
    cmd::run(
        cmd::command("cp", ["-a"])
            .arg(tree.join("sys/."))
            .arg(stage),
    )?;
    bind(stage, Path::new("/sys"))
}

fn show_real(folder: &str, stage: &Path, wanted: impl Fn(&str) -> bool) -> Result<()> {
    let real = Path::new("/sys").join(folder);
    for entry in std::fs::read_dir(&real).with_context(|| format!("list {}", real.display()))? {
        let entry = entry.with_context(|| format!("list {}", real.display()))?;
        let name = entry.file_name();
        if wanted(&name.to_string_lossy()) {
            let target = stage.join(folder).join(&name);
            if entry.path().is_dir() {
                make(&target)?;
            } else {
                make(&stage.join(folder))?;
                std::fs::write(&target, "")
                    .with_context(|| format!("create {}", target.display()))?;
            }
            bind(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// `/proc/driver/nvidia` and `/proc/modules`; procfs itself takes no new entries, so a tmpfs lies over `/proc/driver`.
fn proc(tree: &Path) -> Result<()> {
    mount_at(
        Some("tmpfs"),
        Path::new("/proc/driver"),
        Some("tmpfs"),
        MsFlags::empty(),
        None,
    )?;
    let driver = tree.join("proc/driver/.");
    if driver.exists() {
        cmd::run(cmd::command("cp", ["-a"]).arg(driver).arg("/proc/driver"))?;
    }
    cmd::run(
        cmd::command("cp", ["-a"])
            .arg(tree.join("proc/modules"))
            .arg("/run/machine/modules"),
    )?;
    // A kernel without loadable modules shows no such file; then /sys/module alone says what is loaded.
    let list = Path::new("/proc/modules");
    if list.exists() {
        bind(Path::new("/run/machine/modules"), list)
    } else {
        Ok(())
    }
}

/// Numbers as the kernel's drivers use them: uverbs 231:192+n, `rdma_cm` 10:58, nvidia 195.
fn device_nodes(machine: &Shown) -> Result<()> {
    for index in 0..machine.nics() {
        node(&format!("/dev/infiniband/uverbs{index}"), 231, 192 + index)?;
    }
    if machine.nics() > 0 {
        node("/dev/infiniband/rdma_cm", 10, 58)?;
    }
    for minor in 0..machine.gpus() {
        node(&format!("/dev/nvidia{minor}"), 195, minor)?;
    }
    if machine.gpus() > 0 {
        node("/dev/nvidiactl", 195, 255)?;
        node("/dev/nvidia-uvm", 510, 0)?;
    }
    Ok(())
}

fn node(path: &str, major: usize, minor: usize) -> Result<()> {
    cmd::exec(
        "mknod",
        [
            "-m",
            "666",
            path,
            "c",
            &major.to_string(),
            &minor.to_string(),
        ],
    )
}

fn topology_file(machine: &Shown) -> Result<()> {
    let Some(xml) = machine.topology_file() else {
        return Ok(());
    };
    make(Path::new("/var/run/nvidia-topologyd"))?;
    write("/var/run/nvidia-topologyd/virtualTopology.xml", xml)
}

/// Splits the processors over two NUMA nodes as the kubelet sees them.
fn two_numa_nodes() -> Result<()> {
    let real = Path::new("/sys/devices/system/node");
    let stage = Path::new("/run/machine/numa");
    make(&stage.join("node1"))?;
    // sysfs refuses to let some files be read; what the kubelet reads is copied.
    let _ = cmd::run(cmd::command("cp", ["-a"]).arg(real.join(".")).arg(stage));
    cmd::run(
        cmd::command("cp", ["-a"])
            .arg(stage.join("node0/."))
            .arg(stage.join("node1")),
    )?;
    let _ = std::fs::remove_file(stage.join("node0/cpu1"));
    let _ = std::fs::remove_file(stage.join("node1/cpu0"));
    for (file, text) in [
        ("node0/cpulist", "0"),
        ("node1/cpulist", "1"),
        ("node0/distance", "10 21"),
        ("node1/distance", "21 10"),
    ] {
        write(stage.join(file), &format!("{text}\n"))?;
    }
    let meminfo = std::fs::read_to_string(stage.join("node1/meminfo"))
        .context("read a NUMA node's meminfo")?;
    write(
        stage.join("node1/meminfo"),
        &meminfo.replace("Node 0", "Node 1"),
    )?;
    for file in [
        "online",
        "possible",
        "has_cpu",
        "has_memory",
        "has_normal_memory",
    ] {
        write(stage.join(file), "0-1\n")?;
    }
    bind(stage, real)
}

/// A stand-in that works on the node's own `/proc/modules`: no module of the machine underneath is touched.
fn modprobe() -> Result<()> {
    for name in ["modprobe", "rmmod"] {
        let path = Path::new("/usr/sbin").join(name);
        let _ = std::fs::remove_file(&path);
        write(&path, include_str!("modprobe.sh"))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .context("make modprobe executable")?;
        let other = Path::new("/sbin").join(name);
        if !other.exists() {
            symlink(&path, &other).with_context(|| format!("link {}", other.display()))?;
        }
    }
    Ok(())
}

fn write(path: impl AsRef<Path>, text: &str) -> Result<()> {
    let path = path.as_ref();
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
