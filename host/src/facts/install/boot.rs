//! The running kernel's page size, configuration and trust, the kernels that are installed, and the one that boots next.

use std::collections::BTreeMap;
use std::io::Read;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::or_else;
use crate::facts::Sourced;
use crate::parse::{checked, natural};
use crate::root::{Root, fact};

/// First process: any has the same page size.
const SMAPS: &str = "/proc/1/smaps";
/// Whether the firmware is UEFI.
const EFI: &str = "/sys/firmware/efi";
/// UEFI's variable: four bytes of attributes, then 1 where Secure Boot is on (UEFI 2.10, 3.3 and 32.3).
const SECURE_BOOT: &str =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// Lockdown of the kernel (`security/lockdown/lockdown.c`).
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
/// The kernel's command line.
const COMMAND_LINE: &str = "/proc/cmdline";
/// The kernel's configuration, where it shows it itself.
const PROC_CONFIG: &str = "/proc/config.gz";
/// Longest configuration that is unpacked.
const CONFIG_LIMIT: u64 = 4 << 20;
/// Options of the kernel that GPU-direct RDMA and out-of-tree modules depend on.
const OPTIONS: &[&str] = &[
    "CONFIG_DMABUF_MOVE_NOTIFY",
    "CONFIG_DMA_SHARED_BUFFER",
    "CONFIG_MODULE_SIG_FORCE",
    "CONFIG_PCI_P2PDMA",
];

/// The running kernel and the one that boots next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Boot {
    /// Page size in bytes.
    pub page_size: Sourced<u64>,
    /// Whether Secure Boot is on; `Absent` on a machine without UEFI.
    pub secure_boot: Sourced<bool>,
    /// `none`, `integrity` or `confidentiality`; `Absent` where the kernel knows no lockdown.
    pub lockdown: Sourced<String>,
    /// The kernel's command line.
    pub command_line: Sourced<String>,
    /// Options of the running kernel that matter here, `y`, `m` or `n`.
    pub config: Sourced<BTreeMap<String, String>>,
    /// Installed kernels by release.
    pub kernels: Sourced<BTreeMap<String, Kernel>>,
    /// The boot loader's next entry, as it is written.
    pub next_entry: Sourced<String>,
    /// The installed kernel that the entry names.
    pub next_kernel: Fact<String>,
}

/// An installed kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kernel {
    /// Whether its modules are there, indexed by depmod.
    pub modules: bool,
    /// Whether its image is in /boot.
    pub image: bool,
}

pub(super) fn boot(root: &Root, release: &Fact<String>) -> Boot {
    let kernels = kernels(root);
    let next_entry = next_entry(root);
    Boot {
        page_size: Sourced::new(SMAPS, page_size(root)),
        secure_boot: Sourced::new(SECURE_BOOT, secure_boot(root)),
        lockdown: Sourced::new(
            LOCKDOWN,
            checked(root.read(LOCKDOWN), LOCKDOWN, "lockdown state", in_brackets),
        ),
        command_line: Sourced::new(COMMAND_LINE, root.read(COMMAND_LINE)),
        config: config(root, release),
        next_kernel: next_kernel(&next_entry, kernels.fact.known()),
        kernels,
        next_entry,
    }
}

/// `KernelPageSize:        4 kB` of the first mapping; the kernel makes up no more of the file than is read.
fn page_size(root: &Root) -> Fact<u64> {
    let text = fact(root.bytes_up_to(SMAPS, 4096));
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    checked(text, SMAPS, "mapping with its page size", |text| {
        let size = crate::parse::field(text, "KernelPageSize")?;
        let kilobytes: u64 = size.strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    })
}

fn secure_boot(root: &Root) -> Fact<bool> {
    match fact(root.bytes_up_to(SECURE_BOOT, 5)) {
        Fact::Known(bytes) => match bytes.get(4) {
            Some(0) => Fact::Known(false),
            Some(1) => Fact::Known(true),
            _ => Fact::Unreadable(format!("read {SECURE_BOOT}: its fifth byte is not 0 or 1")),
        },
        Fact::Absent if root.resolve(EFI).is_ok() => Fact::Unreadable(format!(
            "{EFI} is there and its variables are not: efivarfs is not mounted"
        )),
        other => other.map(|_| false),
    }
}

/// `none [integrity] confidentiality`.
fn in_brackets(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn config(root: &Root, release: &Fact<String>) -> Sourced<BTreeMap<String, String>> {
    let Fact::Known(release) = release else {
        let why = "the kernel's release is not known".to_owned();
        return Sourced::new(PROC_CONFIG, Fact::Unreadable(why));
    };
    let places = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
    ];
    for path in places {
        match root.read(&path) {
            Fact::Absent => {}
            found => return Sourced::new(path, found.map(|text| options(&text))),
        }
    }
    Sourced::new(
        PROC_CONFIG,
        unpacked_config(root).map(|text| options(&text)),
    )
}

fn unpacked_config(root: &Root) -> Fact<String> {
    let packed = match fact(root.bytes(PROC_CONFIG)) {
        Fact::Known(bytes) => bytes,
        Fact::Absent => return Fact::Absent,
        Fact::Unreadable(why) => return Fact::Unreadable(why),
    };
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(packed.as_slice()).take(CONFIG_LIMIT);
    match unpacked.read_to_string(&mut text) {
        Ok(_) => Fact::Known(text),
        Err(error) => Fact::Unreadable(format!("unpack {PROC_CONFIG}: {error}")),
    }
}

/// `CONFIG_X=y`; an option that is not set stands as a comment, or not at all.
fn options(text: &str) -> BTreeMap<String, String> {
    let value = |option: &str| {
        let found = text
            .lines()
            .find_map(|line| line.strip_prefix(option)?.strip_prefix('='));
        found.unwrap_or("n").to_owned()
    };
    OPTIONS
        .iter()
        .map(|option| ((*option).to_owned(), value(option)))
        .collect()
}

fn kernels(root: &Root) -> Sourced<BTreeMap<String, Kernel>> {
    let (modules, boot) = ("/lib/modules", "/boot");
    let fact = match (root.entries(modules), root.entries(boot)) {
        (Fact::Absent, Fact::Absent) => Fact::Absent,
        (Fact::Unreadable(why), _) | (_, Fact::Unreadable(why)) => Fact::Unreadable(why),
        (directories, images) => Fact::Known(by_release(
            root,
            directories.known().into_iter().flatten(),
            images.known().into_iter().flatten(),
        )),
    };
    Sourced::new(modules, fact)
}

/// Directories without an index are left-overs of removed kernels.
fn by_release<'a>(
    root: &Root,
    directories: impl Iterator<Item = &'a String>,
    images: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, Kernel> {
    let mut kernels: BTreeMap<String, Kernel> = BTreeMap::new();
    for release in directories {
        let index = format!("/lib/modules/{release}/modules.dep");
        if root.resolve(&index).is_ok() {
            kernels.entry(release.clone()).or_default().modules = true;
        }
    }
    let rescue = |release: &&str| !release.contains("rescue");
    for release in images
        .filter_map(|name| name.strip_prefix("vmlinuz-"))
        .filter(rescue)
    {
        kernels.entry(release.to_owned()).or_default().image = true;
    }
    kernels
}

/// GRUB's environment first (`grub-editenv`), then GRUB's default, then systemd-boot's.
fn next_entry(root: &Root) -> Sourced<String> {
    for path in [
        "/boot/grub2/grubenv",
        "/boot/grub/grubenv",
        "/etc/default/grub",
    ] {
        match root.read(path) {
            Fact::Known(text) => {
                if let Some(entry) = grub_entry(&text) {
                    return Sourced::new(path, Fact::Known(entry));
                }
            }
            Fact::Unreadable(why) => return Sourced::new(path, Fact::Unreadable(why)),
            Fact::Absent => {}
        }
    }
    let loader = "/boot/loader/loader.conf";
    let esp = "/boot/efi/loader/loader.conf";
    let entry = |path: &str| {
        checked(root.read(path), path, "default entry", |text| {
            let mut lines = text.lines().map(str::split_whitespace);
            lines
                .find_map(|mut words| (words.next() == Some("default")).then(|| words.next())?)
                .map(str::to_owned)
        })
    };
    Sourced::new(loader, or_else(entry(loader), || entry(esp)))
}

/// `next_entry` holds for one boot, `saved_entry` for all, `GRUB_DEFAULT` where nothing is saved.
fn grub_entry(text: &str) -> Option<String> {
    let value = |key: &str| {
        let line = text
            .lines()
            .rev()
            .find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
        let value = line.trim().trim_matches(['"', '\'']);
        (!value.is_empty() && value != "saved").then(|| value.to_owned())
    };
    ["next_entry", "saved_entry", "GRUB_DEFAULT"]
        .iter()
        .find_map(|key| value(key))
}

/// The longest installed release that the entry's text contains; entry 0 of GRUB's own menu is the newest.
fn next_kernel(
    entry: &Sourced<String>,
    kernels: Option<&BTreeMap<String, Kernel>>,
) -> Fact<String> {
    let bootable = || {
        kernels
            .into_iter()
            .flatten()
            .filter(|(_, kernel)| kernel.image)
    };
    let entry = match &entry.fact {
        Fact::Known(entry) => entry,
        Fact::Absent => return Fact::Absent,
        Fact::Unreadable(why) => return Fact::Unreadable(why.clone()),
    };
    let named = bootable().filter(|(release, _)| entry.contains(release.as_str()));
    let named = named.max_by_key(|(release, _)| release.len());
    let newest = || bootable().max_by(|(a, _), (b, _)| natural(a, b));
    let found = if entry == "0" { newest() } else { named };
    found.map_or_else(
        || Fact::Unreadable(format!("the entry `{entry}` names no installed kernel")),
        |(release, _)| Fact::Known(release.clone()),
    )
}
