//! Who uses RDMA now: processes with an open device, with their pods, and parts of the kernel.
//!
//! A process holds `/dev/infiniband/uverbs<N>` open for as long as it has a context; `/proc/<pid>/cgroup` names its pod.
//! Queue pairs and connections come from `rdma resource show`. That a kernel module is loaded is no use: distributions load
//! some wherever there is an RDMA device.

mod kernel;
mod pods;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;

use super::ToolAnswers;
use crate::root::{Root, RootError};

pub use kernel::KernelUser;
pub use pods::{Pod, pod_uid};

/// A process with more open files than that is looked at no further.
const MAX_FILES: usize = 1 << 16;

/// Who uses RDMA now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RdmaUsers {
    /// Processes with an open device, by id.
    pub processes: Fact<Vec<RdmaProcess>>,
    /// Modules above the RDMA stack, by name.
    pub kernel: Fact<Vec<KernelUser>>,
}

/// A process with an open RDMA device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RdmaProcess {
    /// Its id on the host.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The pod that it is in.
    pub pod: Option<Pod>,
    /// Devices that it has open: `uverbs0`.
    pub devices: Vec<String>,
    /// Its queue pairs; unreadable where nobody could ask the kernel.
    pub queue_pairs: Fact<u32>,
}

/// A row of `rdma -j resource show`; one without a process is the kernel's.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Resource {
    pid: Option<u32>,
    comm: Option<String>,
}

/// Looks at every process and every module above the stack.
#[must_use]
pub fn read(root: &Root, answers: &ToolAnswers) -> RdmaUsers {
    let queue_pairs = resources(&answers.rdma_queue_pairs);
    let connections = resources(&answers.rdma_connections);
    RdmaUsers {
        processes: match processes(root, &queue_pairs) {
            Ok(found) => Fact::Known(found),
            Err(why) => Fact::Unreadable(why),
        },
        kernel: kernel::read(root, &queue_pairs, &connections),
    }
}

fn resources(answer: &Fact<String>) -> Fact<Vec<Resource>> {
    match answer {
        Fact::Known(text) if text.is_empty() => Fact::Known(Vec::new()),
        Fact::Known(text) => match serde_json::from_str(text) {
            Ok(rows) => Fact::Known(rows),
            Err(error) => {
                Fact::Unreadable(format!("read the answer of `rdma resource show`: {error}"))
            }
        },
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why.clone()),
    }
}

fn processes(root: &Root, queue_pairs: &Fact<Vec<Resource>>) -> Result<Vec<RdmaProcess>, String> {
    let names = root.list_dir("/proc").map_err(|error| error.chain())?;
    let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    let names_of_pods = pods::names(root);
    let mut found = Vec::new();
    for pid in pids {
        let devices = open_devices(root, pid)?;
        if !devices.is_empty() {
            found.push(process(root, pid, devices, queue_pairs, &names_of_pods));
        }
    }
    Ok(found)
}

fn process(
    root: &Root,
    pid: u32,
    devices: Vec<String>,
    queue_pairs: &Fact<Vec<Resource>>,
    pods: &BTreeMap<String, (String, String)>,
) -> RdmaProcess {
    let group = root
        .text(&format!("/proc/{pid}/cgroup"))
        .unwrap_or_default();
    let own = |rows: Vec<Resource>| rows.iter().filter(|row| row.pid == Some(pid)).count();
    RdmaProcess {
        pid,
        name: root.text(&format!("/proc/{pid}/comm")).unwrap_or_default(),
        pod: pod_uid(&group).map(|uid| Pod::named(uid, pods)),
        devices,
        queue_pairs: queue_pairs
            .clone()
            .map(|rows| u32::try_from(own(rows)).unwrap_or(u32::MAX)),
    }
}

/// RDMA devices that a process has open; one that ends meanwhile has none.
fn open_devices(root: &Root, pid: u32) -> Result<Vec<String>, String> {
    let directory = format!("/proc/{pid}/fd");
    let files = match root.list_dir(&directory) {
        Ok(files) => files,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error.chain()),
    };
    if files.len() > MAX_FILES {
        return Err(format!(
            "list {directory}: more than {MAX_FILES} open files"
        ));
    }
    let target = |file: &String| root.link_target(&format!("{directory}/{file}")).ok();
    let device = |target: String| {
        let name = target.strip_prefix("/dev/infiniband/")?;
        name.starts_with("uverbs").then(|| name.to_owned())
    };
    let mut devices: Vec<_> = files.iter().filter_map(target).filter_map(device).collect();
    devices.sort();
    devices.dedup();
    Ok(devices)
}

/// The kernel says ESRCH of a process that has just ended.
fn is_gone(error: &RootError) -> bool {
    const ESRCH: i32 = 3;
    match error {
        RootError::Io { source, .. } => source.raw_os_error() == Some(ESRCH),
        other => other.is_not_found(),
    }
}

#[cfg(test)]
mod tests;
