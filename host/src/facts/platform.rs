//! What the machine is: distribution, virtual or not, product.

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::Sourced;
use crate::parse::checked;
use crate::root::Root;

/// The distribution's description (`os-release(5)`).
pub(crate) const OS_RELEASE: &str = "/etc/os-release";
/// Processors.
pub(crate) const CPUINFO: &str = "/proc/cpuinfo";
/// Product name from the firmware.
pub(crate) const PRODUCT: &str = "/sys/class/dmi/id/product_name";
/// Vendor from the firmware.
pub(crate) const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";

/// The distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OsRelease {
    /// `ID`: `ubuntu`.
    pub id: String,
    /// `ID_LIKE`, word by word.
    pub id_like: Vec<String>,
    /// `VERSION_ID`: `24.04`; rolling distributions have none.
    pub version_id: Option<String>,
    /// `PRETTY_NAME`.
    pub name: Option<String>,
}

/// The distribution.
#[must_use]
pub fn os_release(root: &Root) -> Sourced<OsRelease> {
    Sourced::new(
        OS_RELEASE,
        checked(
            root.read(OS_RELEASE),
            OS_RELEASE,
            "os-release with an ID",
            parse_os_release,
        ),
    )
}

fn parse_os_release(text: &str) -> Option<OsRelease> {
    let value = |key: &str| {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
        Some(
            line.trim_matches(|quote| quote == '"' || quote == '\'')
                .to_owned(),
        )
    };
    Some(OsRelease {
        id: value("ID")?,
        id_like: value("ID_LIKE")
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        version_id: value("VERSION_ID"),
        name: value("PRETTY_NAME"),
    })
}

/// The `hypervisor` flag of x86 processors; others have no such line, which is `Absent`.
#[must_use]
pub fn hypervisor(root: &Root) -> Sourced<bool> {
    let flags = match root.read(CPUINFO) {
        Fact::Known(text) => Fact::from(
            crate::parse::field(&text, "flags").map(|flags| has_word(flags, "hypervisor")),
        ),
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why),
    };
    Sourced::new(CPUINFO, flags)
}

fn has_word(text: &str, wanted: &str) -> bool {
    text.split_whitespace().any(|word| word == wanted)
}

/// Product name from the firmware.
#[must_use]
pub fn product(root: &Root) -> Sourced<String> {
    Sourced::new(PRODUCT, root.read(PRODUCT))
}

/// Vendor from the firmware.
#[must_use]
pub fn vendor(root: &Root) -> Sourced<String> {
    Sourced::new(VENDOR, root.read(VENDOR))
}
