//! Who must be gone before an action that breaks running RDMA traffic, by name. Pure; whoever grants or runs such an action
//! asks [`blocking`]. [`crate::tools::Tools::users`] reads who is there.

use std::collections::BTreeSet;
use std::fmt;

use host::facts::tuning::users::{KernelUser, RdmaProcess, RdmaUsers};
use topology::fact::Fact;

/// What kind of user stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A part of the kernel: nothing here ends it.
    Kernel,
    /// A process outside of pods.
    Process,
    /// A pod: it can be waited for or evicted.
    Pod,
    /// Who is there could not be read.
    Unknown,
}

/// One user that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blocker {
    /// What it is.
    pub what: What,
    /// Its name: `ko2iblnd (Lustre)`, `ibacm (pid 812)`, `team/job-0`.
    pub name: String,
    /// What makes it go.
    pub remedy: String,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::Kernel => "kernel user",
            What::Process => "process",
            What::Pod => "pod",
            What::Unknown => "RDMA users",
        };
        write!(f, "{what} {}: {}", self.name, self.remedy)
    }
}

/// Kernel modules above the RDMA stack: module, what it is, what makes it let go.
const KERNEL_USERS: &[(&str, &str, &str)] = &[
    (
        "9pnet_rdma",
        "9P over RDMA",
        "unmount the 9p file systems with trans=rdma",
    ),
    ("beegfs", "BeeGFS client", "stop beegfs-client"),
    (
        "cifs",
        "SMB Direct",
        "unmount the SMB file systems with the option rdma",
    ),
    (
        "ib_iser",
        "iSCSI over RDMA",
        "log out of the sessions of interface iser: iscsiadm -m session -u",
    ),
    (
        "ib_isert",
        "iSCSI target over RDMA",
        "disable iser on the target's portals (targetcli)",
    ),
    (
        "ib_srp",
        "SRP client",
        "stop srp_daemon and remove its hosts",
    ),
    (
        "ib_srpt",
        "SRP target",
        "disable the SRP target (targetcli)",
    ),
    ("ko2iblnd", "Lustre", "unmount Lustre, then `lustre_rmmod`"),
    ("ksmbd", "SMB server", "stop ksmbd"),
    (
        "nvme_rdma",
        "NVMe over Fabrics",
        "nvme disconnect the controllers of transport rdma",
    ),
    (
        "nvmet_rdma",
        "NVMe over Fabrics target",
        "remove the target's ports of transport rdma",
    ),
    ("rds_rdma", "RDS", "stop what uses RDS, then rmmod rds_rdma"),
    ("rnbd_client", "RNBD client", "unmap the RNBD devices"),
    (
        "rpcrdma",
        "NFS over RDMA",
        "unmount the NFS file systems with proto=rdma; on a server stop its RDMA listener",
    ),
    ("rtrs_client", "RTRS client", "unmap the devices over RTRS"),
    ("smc", "SMC", "end the programs with SMC sockets (smcss)"),
    ("smc_ib", "SMC", "end the programs with SMC sockets (smcss)"),
];

/// What stands in the way of an action that breaks running RDMA traffic; empty: nothing does. Pods whose uid is in `allowed`
/// may be there. What could not be read stands in the way too.
#[must_use]
pub fn blocking(users: &RdmaUsers, allowed: &BTreeSet<String>) -> Vec<Blocker> {
    let mut blockers = BTreeSet::new();
    match &users.processes {
        Fact::Known(processes) => {
            blockers.extend(processes.iter().filter_map(|one| process(one, allowed)));
        }
        Fact::Absent => {}
        Fact::Unreadable(why) => drop(blockers.insert(unknown("processes", why))),
    }
    match &users.kernel {
        Fact::Known(modules) => blockers.extend(modules.iter().filter_map(kernel)),
        // Without a list of modules there is none to load either.
        Fact::Absent => {}
        Fact::Unreadable(why) => drop(blockers.insert(unknown("kernel users", why))),
    }
    blockers.into_iter().collect()
}

fn unknown(name: &str, why: &str) -> Blocker {
    Blocker {
        what: What::Unknown,
        name: name.to_owned(),
        remedy: format!("who uses RDMA is unknown: {why}"),
    }
}

fn process(process: &RdmaProcess, allowed: &BTreeSet<String>) -> Option<Blocker> {
    match &process.pod {
        Some(pod) if allowed.contains(&pod.uid) => None,
        Some(pod) => Some(Blocker {
            what: What::Pod,
            name: pod.display(),
            remedy: format!(
                "its process {} has an RDMA device open; wait for it or evict it",
                process.name
            ),
        }),
        None => Some(Blocker {
            what: What::Process,
            name: format!("{} (pid {})", process.name, process.pid),
            remedy: format!(
                "it has {} open; stop it or its service",
                process.devices.join(", ")
            ),
        }),
    }
}

/// Loaded is not used: some modules are loaded wherever there is an RDMA device. References, connections and mounts are use.
fn kernel(user: &KernelUser) -> Option<Blocker> {
    let reason = use_of(user)?;
    let (name, remedy) = match known_module(&user.module) {
        Some((what, remedy)) => (format!("{} ({what})", user.module), remedy.to_owned()),
        None => (
            user.module.clone(),
            format!("stop what uses {}", user.module),
        ),
    };
    Some(Blocker {
        what: What::Kernel,
        name,
        remedy: format!("{reason}; {remedy}"),
    })
}

fn use_of(user: &KernelUser) -> Option<String> {
    if !user.uses.is_empty() {
        return Some(user.uses.join(", "));
    }
    match (&user.connections, &user.references) {
        (Fact::Known(count), _) if *count > 0 => {
            Some(format!("{count} queue pairs or connections"))
        }
        (_, Fact::Known(0)) => None,
        (_, Fact::Known(count)) => Some(format!("{count} references")),
        (_, Fact::Absent) => Some("whether it is in use is not shown by this kernel".to_owned()),
        (_, Fact::Unreadable(why)) => Some(format!("whether it is in use is unknown: {why}")),
    }
}

/// What a module above the RDMA stack is, and what makes it let go; `None` for one that is not in the table.
#[must_use]
pub fn known_module(name: &str) -> Option<(&'static str, &'static str)> {
    let row = KERNEL_USERS.iter().find(|(module, _, _)| *module == name)?;
    Some((row.1, row.2))
}

#[cfg(test)]
mod tests;
