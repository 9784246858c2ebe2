//! `device-plugin doctor`: what stands between this node and its pairs, and what to do about it.
//!
//! [`gather`] reads (files, sockets, ports), [`checks`] judges and is pure, [`render`] prints.

use serde::Serialize;

use crate::accept::{self, Reading};

mod devices;
mod facts;

pub use facts::{Facts, SocketState, Where, gather};

/// Outcome of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing is lost.
    Warn,
    /// Could not be found out.
    Unknown,
    /// Devices are missing because of it.
    Fail,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was seen.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    fn ok(name: &str, detail: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            verdict: Verdict::Ok,
            detail: detail.into(),
            remedy: None,
        }
    }

    fn bad(name: &str, verdict: Verdict, detail: impl Into<String>, remedy: &str) -> Self {
        Self {
            name: name.to_owned(),
            verdict,
            detail: detail.into(),
            remedy: Some(remedy.to_owned()),
        }
    }
}

const NO_FILE: &str = "the node-agent writes it once the cluster's mode is Enforce and the node has pairs: look at the \
    agent's pod on this node and at the node's GpuRdmaNode";
const BAD_FILE: &str = "a running plugin keeps the last good file of this boot; give agent and plugin the same version \
    and look at the agent's log";
const STALE_FILE: &str =
    "the agent writes a new file after each boot: look at its pod on this node";
const NO_BOOT_ID: &str =
    "mount the host's /proc/sys/kernel/random/boot_id as a file and name it by --boot-id-file";
const NO_DIR: &str = "mount the kubelet's device-plugins directory; where the kubelet has another --root-dir, name it by \
    --kubelet-dir";
const NO_KUBELET: &str = "start the kubelet, or look whether its --root-dir is another one and name its device-plugins \
    directory by --kubelet-dir";
const NO_SOCKET: &str =
    "the plugin serves nothing: look whether its pod runs on this node and at its log";
const DESERTED: &str =
    "left behind by a run that was killed; the next start of the plugin removes it";
const SILENT: &str =
    "the process is there and does not answer: restart the plugin's pod and keep its log";
const UNREADABLE: &str = "run doctor as root in the plugin's container or on the host";

/// Every check, in the order in which things depend on each other.
#[must_use]
pub fn checks(facts: &Facts) -> Vec<Check> {
    let mut all = vec![node_file(facts), kubelet_dir(facts), kubelet(facts)];
    all.extend(sockets(facts));
    if let (Some(text), Some(boot)) = (facts.node_file.known(), facts.boot_id.known())
        && let Reading::Good(file) = accept::judge(text, boot)
    {
        all.extend(devices::checks(&file, facts));
    }
    all
}

fn node_file(facts: &Facts) -> Check {
    use topology::fact::Fact::{Absent, Known, Unreadable};
    let name = "node file";
    match (&facts.node_file, &facts.boot_id) {
        (Absent, _) => Check::bad(name, Verdict::Fail, "there is none", NO_FILE),
        (Unreadable(why), _) => Check::bad(name, Verdict::Unknown, why, UNREADABLE),
        (Known(_), Absent) => Check::bad(
            name,
            Verdict::Fail,
            "the boot id file is not there",
            NO_BOOT_ID,
        ),
        (Known(_), Unreadable(why)) => Check::bad(name, Verdict::Unknown, why, NO_BOOT_ID),
        (Known(text), Known(boot)) => judged(name, &accept::judge(text, boot)),
    }
}

fn judged(name: &str, reading: &Reading) -> Check {
    match reading {
        Reading::Good(file) => {
            let count = file.resources.len();
            Check::ok(
                name,
                format!(
                    "schema {}, generation {}, {count} resources",
                    file.schema, file.generation
                ),
            )
        }
        Reading::OtherBoot { file, host } => Check::bad(
            name,
            Verdict::Fail,
            format!("of boot {file}, the host is at boot {host}"),
            STALE_FILE,
        ),
        Reading::Unusable(why) => Check::bad(name, Verdict::Fail, why, BAD_FILE),
        Reading::Gone => Check::bad(name, Verdict::Fail, "there is none", NO_FILE),
    }
}

fn kubelet_dir(facts: &Facts) -> Check {
    use topology::fact::Fact::{Absent, Known, Unreadable};
    let name = "kubelet directory";
    match &facts.sockets {
        Known(_) => Check::ok(name, facts.kubelet_dir.display().to_string()),
        Absent => Check::bad(
            name,
            Verdict::Fail,
            format!("{} is not there", facts.kubelet_dir.display()),
            NO_DIR,
        ),
        Unreadable(why) => Check::bad(name, Verdict::Unknown, why, UNREADABLE),
    }
}

fn kubelet(facts: &Facts) -> Check {
    let name = "kubelet.sock";
    match &facts.kubelet {
        SocketState::Listening => Check::ok(name, "the kubelet listens"),
        SocketState::Absent => Check::bad(name, Verdict::Fail, "there is none", NO_KUBELET),
        SocketState::Deserted => {
            Check::bad(name, Verdict::Fail, "nobody listens on it", NO_KUBELET)
        }
        SocketState::Unknown(why) => Check::bad(name, Verdict::Unknown, why, UNREADABLE),
    }
}

fn sockets(facts: &Facts) -> Vec<Check> {
    let Some(sockets) = facts.sockets.known() else {
        return Vec::new();
    };
    let live = sockets.values().any(Result::is_ok);
    let mut checks: Vec<Check> = sockets
        .iter()
        .map(|(name, served)| socket(name, served))
        .collect();
    if !live {
        checks.push(Check::bad(
            "plugin sockets",
            Verdict::Fail,
            "no socket of the plugin answers",
            NO_SOCKET,
        ));
    }
    checks
}

fn socket(name: &str, served: &Result<Vec<crate::proto::Device>, facts::Silence>) -> Check {
    match served {
        Ok(devices) => {
            let healthy = devices
                .iter()
                .filter(|device| device.health == crate::proto::HEALTHY)
                .count();
            Check::ok(
                name,
                format!(
                    "serves {} devices, {healthy} of them Healthy",
                    devices.len()
                ),
            )
        }
        Err(facts::Silence::Deserted) => {
            Check::bad(name, Verdict::Warn, "nobody listens on it", DESERTED)
        }
        Err(facts::Silence::Failed(why)) => Check::bad(name, Verdict::Fail, why, SILENT),
    }
}

/// Exit code: 0 nothing is wrong, 1 something failed, 3 something could not be found out.
#[must_use]
pub fn exit_code(checks: &[Check]) -> u8 {
    match checks.iter().map(|check| check.verdict).max() {
        Some(Verdict::Fail) => 1,
        Some(Verdict::Unknown) => 3,
        Some(Verdict::Ok | Verdict::Warn) | None => 0,
    }
}

/// One line per check, and its remedy below.
#[must_use]
pub fn render(checks: &[Check]) -> String {
    checks.iter().map(line).collect()
}

fn line(check: &Check) -> String {
    let verdict = match check.verdict {
        Verdict::Ok => "ok",
        Verdict::Warn => "warn",
        Verdict::Unknown => "?",
        Verdict::Fail => "FAIL",
    };
    let remedy = check
        .remedy
        .as_ref()
        .map_or_else(String::new, |remedy| format!("      -> {remedy}\n"));
    format!("{verdict:<5} {}: {}\n{remedy}", check.name, check.detail)
}

#[cfg(test)]
mod tests;
