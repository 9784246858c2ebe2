//! The package manager, what it has installed, and what would stop it.
//!
//! dpkg's database is text and read here. RPM's is not: the fact says so, and the agent asks `rpm`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use crate::facts::platform::{self, OsRelease};
use crate::facts::{Sourced, install::or_else};
use crate::root::{Root, fact};

/// dpkg's database (`dpkg-query(1)`).
pub const DPKG_STATUS: &str = "/var/lib/dpkg/status";
/// What dpkg has begun and not ended (`lib/dpkg/dbmodify.c`).
const DPKG_UPDATES: &str = "/var/lib/dpkg/updates";
/// Why an RPM database is not read here.
pub const ASK_RPM: &str = "ask rpm";
/// Where an RPM database is.
const RPM_DATABASES: &[&str] = &[
    "/var/lib/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/Packages.db",
    "/var/lib/rpm/Packages.db",
    "/var/lib/rpm/Packages",
];
/// Locks of package managers that are held with `fcntl`: that a file is there says nothing.
const LOCKS: &[&str] = &[
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
    "/var/lib/rpm/.rpm.lock",
];

/// Where repositories and their keys are described.
const DESCRIPTIONS: &[&str] = &[
    "/etc/apt/keyrings",
    "/etc/apt/sources.list.d",
    "/etc/pki/rpm-gpg",
    "/etc/yum.repos.d",
    "/etc/zypp/repos.d",
];

/// A package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Manager {
    /// Debian, Ubuntu.
    Apt,
    /// RHEL and its kin, Azure Linux (as `tdnf`'s sibling).
    Dnf,
    /// SLES, openSUSE.
    Zypper,
}

/// The package manager and what it has installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Packages {
    /// The package manager; `Absent` on a host that has none.
    pub manager: Sourced<Manager>,
    /// Why packages cannot be changed here, whatever the manager: an image-based or read-only host.
    pub immutable: Sourced<String>,
    /// Installed packages by name.
    pub installed: Sourced<BTreeMap<String, Package>>,
    /// Files that describe repositories and their keys to package managers.
    pub descriptions: Fact<BTreeSet<String>>,
    /// When the database was changed last, in seconds since 1970.
    pub changed_at: Fact<i64>,
    /// Whether dpkg was interrupted and must be told to go on.
    pub interrupted: Sourced<bool>,
    /// Locks that are held now, with the process that holds each.
    pub locks: Fact<BTreeMap<String, u32>>,
}

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// Version, as the package manager writes it.
    pub version: String,
    /// Whether the administrator holds it at this version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// What is not as it should be: `half-configured`; `None` where the package is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

pub(super) fn packages(root: &Root, before: Option<&Packages>) -> Packages {
    let os = platform::os_release(root).fact;
    let manager = manager(root);
    let path = database(root, manager.fact.known().copied());
    let changed_at = root.modified(&path);
    let same = |before: &&Packages| {
        before.changed_at == changed_at
            && before.installed.fact.known().is_some()
            && before.installed.source == path
    };
    let installed = match before.filter(same) {
        Some(before) => before.installed.clone(),
        None => installed(root, &path),
    };
    Packages {
        manager,
        immutable: immutable(root, os.known()),
        installed,
        descriptions: descriptions(root),
        changed_at,
        interrupted: Sourced::new(
            DPKG_UPDATES,
            root.entries(DPKG_UPDATES).map(|names| !names.is_empty()),
        ),
        locks: locks(root),
    }
}

/// Paths of every file in [`DESCRIPTIONS`].
fn descriptions(root: &Root) -> Fact<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for directory in DESCRIPTIONS {
        match root.entries(directory) {
            Fact::Known(names) => {
                paths.extend(names.iter().map(|name| format!("{directory}/{name}")));
            }
            Fact::Absent => {}
            Fact::Unreadable(why) => return Fact::Unreadable(why),
        }
    }
    Fact::Known(paths)
}

fn manager(root: &Root) -> Sourced<Manager> {
    let programs = [
        ("/usr/bin/apt-get", Manager::Apt),
        ("/usr/bin/dnf", Manager::Dnf),
        ("/usr/bin/zypper", Manager::Zypper),
    ];
    for (program, manager) in programs {
        match fact(root.resolve(program)) {
            Fact::Known(_) => return Sourced::new(program, Fact::Known(manager)),
            Fact::Absent => {}
            Fact::Unreadable(why) => return Sourced::new(program, Fact::Unreadable(why)),
        }
    }
    Sourced::new("/usr/bin", Fact::Absent)
}

fn database(root: &Root, manager: Option<Manager>) -> String {
    let there = |path: &&&str| root.resolve(path).is_ok();
    let rpm = || RPM_DATABASES.iter().find(there).copied();
    match manager {
        Some(Manager::Apt) => DPKG_STATUS,
        Some(Manager::Dnf | Manager::Zypper) => rpm().unwrap_or("/var/lib/rpm"),
        None => rpm().unwrap_or(DPKG_STATUS),
    }
    .to_owned()
}

fn installed(root: &Root, path: &str) -> Sourced<BTreeMap<String, Package>> {
    let found = if path == DPKG_STATUS {
        dpkg(root)
    } else if root.resolve(path).is_ok() {
        Fact::Unreadable(ASK_RPM.to_owned())
    } else {
        Fact::Absent
    };
    Sourced::new(path, found)
}

/// Stanzas with `Package`, `Status` and `Version`; a name may stand there once per architecture, and the whole one counts.
fn dpkg(root: &Root) -> Fact<BTreeMap<String, Package>> {
    let mut found = BTreeMap::new();
    let mut stanza = Stanza::default();
    let read = root.each_line(DPKG_STATUS, |line| {
        if line.is_empty() {
            std::mem::take(&mut stanza).end(&mut found);
        } else {
            stanza.line(line);
        }
    });
    stanza.end(&mut found);
    fact(read).map(|()| found)
}

#[derive(Default)]
struct Stanza {
    name: String,
    status: String,
    version: String,
}

impl Stanza {
    fn line(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(": ") else {
            return;
        };
        let field = match key {
            "Package" => &mut self.name,
            "Status" => &mut self.status,
            "Version" => &mut self.version,
            _ => return,
        };
        value.trim().clone_into(field);
    }

    /// `Status: WANTED ERROR STATE`. What is removed and has left only its configuration is not installed.
    fn end(self, found: &mut BTreeMap<String, Package>) {
        let mut words = self.status.split_whitespace();
        let (wanted, _, state) = (words.next(), words.next(), words.next());
        let state = state.unwrap_or("not-installed");
        if self.name.is_empty() || matches!(state, "not-installed" | "config-files") {
            return;
        }
        let broken = (state != "installed").then(|| state.to_owned());
        let whole = found
            .get(&self.name)
            .is_some_and(|other| other.broken.is_none());
        if whole && broken.is_some() {
            return;
        }
        let package = Package {
            version: self.version,
            held: wanted == Some("hold"),
            broken,
        };
        found.insert(self.name, package);
    }
}

/// Hosts whose system is an image. A marker is looked for before the name, which derivatives change.
fn immutable(root: &Root, os: Option<&OsRelease>) -> Sourced<String> {
    let there = |path: &str| root.resolve(path).is_ok();
    let known = |source: &str, what: &str| Sourced::new(source, Fact::Known(what.to_owned()));
    if there("/run/ostree-booted") {
        let what = if os
            .is_some_and(|os| os.id == "rhcos" || os.id_like.iter().any(|id| id == "rhcos"))
            || there("/etc/machine-config-daemon")
        {
            "OpenShift's RHCOS: its system is an image that the Machine Config Operator owns"
        } else {
            "an rpm-ostree host: its system is an image"
        };
        return known("/run/ostree-booted", what);
    }
    let what = match os.map(|os| os.id.as_str()) {
        Some("talos") => "Talos: it has no package manager; use a system extension",
        Some("flatcar") => "Flatcar: its system is an image; use a driver container",
        Some("bottlerocket") => "Bottlerocket: its system is an image",
        Some("cos") => "Container-Optimized OS: its system is an image",
        Some("rhcos") => {
            "OpenShift's RHCOS: its system is an image that the Machine Config Operator owns"
        }
        _ => return read_only(root),
    };
    known("/etc/os-release", what)
}

/// `/usr`, or the root that it is on, mounted read-only.
fn read_only(root: &Root) -> Sourced<String> {
    let mounts = "/proc/1/mounts";
    let of = |text: &str, place: &str| {
        let mut lines = text.lines().rev();
        lines.find_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (here, options) = (words.next()?, words.nth(1)?);
            (here == place).then(|| options.split(',').any(|option| option == "ro"))
        })
    };
    let found = root.read(mounts).map(|text| {
        let usr = of(&text, "/usr").or_else(|| of(&text, "/"));
        (usr == Some(true)).then(|| "/usr is mounted read-only".to_owned())
    });
    Sourced::new(
        mounts,
        or_else(crate::parse::flatten(found), || Fact::Absent),
    )
}

/// `/proc/locks`: `1: POSIX  ADVISORY  WRITE 1234 fd:00:4711 0 EOF`; a file is told by device and inode. Device numbers of
/// layered file systems differ between the two views, so the inode alone decides.
fn locks(root: &Root) -> Fact<BTreeMap<String, u32>> {
    let inodes: BTreeMap<u64, &str> = LOCKS
        .iter()
        .filter_map(|path| {
            let real = root.resolve(path).ok()?;
            let metadata = std::fs::metadata(root.join(&real)).ok()?;
            Some((std::os::unix::fs::MetadataExt::ino(&metadata), *path))
        })
        .collect();
    let held = |line: &str| {
        let mut words = line.split_whitespace().skip(4);
        let (pid, file) = (words.next()?.parse().ok()?, words.next()?);
        let inode: u64 = file.rsplit(':').next()?.parse().ok()?;
        Some(((*inodes.get(&inode)?).to_owned(), pid))
    };
    root.read("/proc/locks")
        .map(|text| text.lines().filter_map(held).collect())
}
