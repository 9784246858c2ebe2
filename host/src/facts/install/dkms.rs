//! Modules that DKMS builds, from its own tree (`dkms(8)`): `/var/lib/dkms/MODULE/VERSION/KERNEL/ARCH/module` holds what
//! was built, the link `MODULE/kernel-KERNEL-ARCH` says which build is installed, and a build that failed leaves its log.

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use crate::facts::Sourced;
use crate::root::Root;

/// DKMS's tree.
const DKMS: &str = "/var/lib/dkms";
/// What is read of a log of a failed build.
const LOG_LIMIT: u64 = 512;
/// Most names that are looked at in one directory.
const MOST: usize = 64;

/// A version of a module that DKMS knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DkmsModule {
    /// Name: `mlnx-ofed-kernel`, `nvidia`.
    pub name: String,
    /// Version.
    pub version: String,
    /// Builds, by kernel.
    pub builds: Vec<DkmsBuild>,
    /// The kernel whose build failed last, from the log that was left.
    pub failed: Fact<String>,
}

/// A module built for a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DkmsBuild {
    /// Kernel release.
    pub kernel: String,
    /// Architecture.
    pub arch: String,
    /// Whether it is the build that is installed for this kernel.
    pub installed: bool,
    /// When it was built, in seconds since 1970.
    pub built_at: Fact<i64>,
}

pub(super) fn dkms(root: &Root) -> Sourced<Vec<DkmsModule>> {
    let fact = root.entries(DKMS).map(|names| {
        let modules = names.iter().take(MOST);
        modules.flat_map(|name| versions(root, name)).collect()
    });
    Sourced::new(DKMS, fact)
}

/// Names in a directory of DKMS's tree; what is no directory has none.
fn names(root: &Root, path: &str) -> Vec<String> {
    let mut names = root.list_dir(path).unwrap_or_default();
    names.truncate(MOST);
    names
}

fn versions(root: &Root, name: &str) -> Vec<DkmsModule> {
    let own = format!("{DKMS}/{name}");
    let versions = names(root, &own);
    let version = |version: &String| {
        let path = format!("{own}/{version}");
        // Links are the installed builds, and what else lies here has no source.
        let is_version = root.link_target(&path).is_err() && !names(root, &path).is_empty();
        is_version.then(|| DkmsModule {
            name: name.to_owned(),
            version: version.clone(),
            builds: builds(root, &own, version),
            failed: failed(root, &path),
        })
    };
    versions.iter().filter_map(version).collect()
}

fn builds(root: &Root, own: &str, version: &str) -> Vec<DkmsBuild> {
    let path = format!("{own}/{version}");
    let mut builds = Vec::new();
    for kernel in names(root, &path) {
        for arch in names(root, &format!("{path}/{kernel}")) {
            let built = format!("{path}/{kernel}/{arch}/module");
            if names(root, &built).is_empty() {
                continue;
            }
            let link = format!("{own}/kernel-{kernel}-{arch}");
            let installed = root.link_target(&link).is_ok_and(|target| {
                target
                    .trim_end_matches('/')
                    .contains(&format!("{version}/{kernel}/"))
            });
            builds.push(DkmsBuild {
                built_at: root.modified(&built),
                kernel: kernel.clone(),
                arch,
                installed,
            });
        }
    }
    builds
}

/// `DKMS make.log for mlnx-ofed-kernel-24.10 for kernel 5.14.0-1.el9.x86_64 (x86_64)`: a build that succeeds removes its
/// directory.
fn failed(root: &Root, path: &str) -> Fact<String> {
    let log = format!("{path}/build/make.log");
    let head = crate::root::fact(root.bytes_up_to(&log, LOG_LIMIT));
    let head = head.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    crate::parse::checked(head, &log, "log that names its kernel", |text| {
        let (_, rest) = text.split_once("for kernel ")?;
        rest.split_whitespace().next().map(str::to_owned)
    })
}
