//! How RDMA devices and network namespaces go together: `ib_core`'s parameter `netns_mode` (kernel
//! `drivers/infiniband/core/device.c`), which a module option sets at load, and the namespaces that keep it from changing.

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use crate::parse::parsed;
use crate::root::Root;

/// The parameter of the loaded module.
const NETNS_MODE: &str = "/sys/module/ib_core/parameters/netns_mode";
/// Where modprobe finds its configuration (`modprobe.d(5)`), strongest first.
const MODPROBE: &[&str] = &[
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];
/// Named network namespaces, those of pods among them.
const NAMED: &str = "/run/netns";

/// The mode and what decides it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RdmaNetns {
    /// Whether every namespace sees every device; `Absent` where `ib_core` is not loaded.
    pub shared: Fact<bool>,
    /// `options ib_core …` lines.
    pub options: Fact<Vec<ModuleOption>>,
    /// Named network namespaces: while one is there the kernel does not change the mode.
    pub namespaces: Fact<Vec<String>>,
}

/// One line of modprobe's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModuleOption {
    /// The file.
    pub file: String,
    /// What follows the module's name: `netns_mode=0`.
    pub value: String,
}

pub(crate) fn read(root: &Root) -> RdmaNetns {
    RdmaNetns {
        shared: parsed(
            root,
            NETNS_MODE,
            "truth value (Y or N)",
            |text| match text {
                "Y" | "1" => Some(true),
                "N" | "0" => Some(false),
                _ => None,
            },
        ),
        options: options(root),
        namespaces: match root.entries(NAMED) {
            // Nobody has made a named namespace since the boot.
            Fact::Absent => Fact::Known(Vec::new()),
            other => other,
        },
    }
}

/// A file of a stronger directory hides one of the same name in a weaker one.
fn options(root: &Root) -> Fact<Vec<ModuleOption>> {
    let mut seen = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    for directory in MODPROBE {
        let names = match root.entries(directory) {
            Fact::Known(names) => names,
            Fact::Absent => continue,
            Fact::Unreadable(why) => return Fact::Unreadable(why),
        };
        for name in names.into_iter().filter(|name| is_configuration(name)) {
            if !seen.insert(name.clone()) {
                continue;
            }
            let file = format!("{directory}/{name}");
            match root.read(&file) {
                Fact::Known(text) => found.extend(lines(&file, &text)),
                Fact::Absent => {}
                Fact::Unreadable(why) => return Fact::Unreadable(why),
            }
        }
    }
    found.sort_by(|a, b| (name(&a.file), &a.value).cmp(&(name(&b.file), &b.value)));
    Fact::Known(found)
}

/// modprobe reads files of this ending only, in lower case.
fn is_configuration(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, ending)| ending == "conf")
}

/// modprobe reads all files in the order of their names.
fn name(file: &str) -> &str {
    crate::root::last_name(file)
}

fn lines(file: &str, text: &str) -> Vec<ModuleOption> {
    let option = |line: &str| {
        let mut words = line.split_whitespace();
        let is_ours =
            words.next() == Some("options") && matches!(words.next(), Some("ib_core" | "ib-core"));
        is_ours.then(|| ModuleOption {
            file: file.to_owned(),
            value: words.collect::<Vec<_>>().join(" "),
        })
    };
    text.lines().filter_map(option).collect()
}
