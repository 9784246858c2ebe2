//! What an answer of the kubelet proves. Pure; [`crate::gather`] makes it, [`crate::decide`] decides on it.
//!
//! A kubelet that has just started answers before its plugins have registered and its pods are admitted again: what it
//! shows is there, and what it does not show may still be there. So a young kubelet proves presence, never absence.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::podresources::KubeletDevices;

/// How long a kubelet must have listened before what it does not show counts as absent.
const SETTLE: SignedDuration = SignedDuration::from_secs(60);

/// The kubelet's socket: another one is another start of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketId {
    /// Device number of the file system.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// When the inode changed last: when it was made.
    pub changed: Timestamp,
}

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.changed.as_nanosecond();
        write!(f, "{}:{}:{nanoseconds}", self.device, self.inode)
    }
}

/// An answer of the kubelet, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    answer: Result<KubeletDevices, String>,
    socket: Option<SocketId>,
    settled: bool,
    plugins: BTreeSet<String>,
}

impl Evidence {
    /// A kubelet that does not answer, and why: it proves nothing.
    #[must_use]
    pub fn silent(why: impl Into<String>) -> Self {
        Self {
            answer: Err(why.into()),
            socket: None,
            settled: false,
            plugins: BTreeSet::new(),
        }
    }

    /// An answer at `now`. `sockets` is who listened before and after it, `watched` who this process has seen, and since
    /// when: where the clock was set back, a socket may seem to be of the future.
    #[must_use]
    pub fn answered(
        devices: KubeletDevices,
        sockets: [Option<SocketId>; 2],
        watched: Option<&(SocketId, Timestamp)>,
        now: Timestamp,
    ) -> Self {
        let [before, after] = sockets;
        let socket = before.filter(|before| Some(before) == after.as_ref());
        let since = |id: &SocketId| {
            let seen = watched.filter(|(seen, _)| seen == id).map(|seen| seen.1);
            seen.map_or(id.changed, |seen| seen.min(id.changed))
        };
        let age = socket.as_ref().map(|id| now.duration_since(since(id)));
        Self {
            answer: Ok(devices),
            settled: age.is_some_and(|age| age >= SETTLE),
            socket,
            plugins: BTreeSet::new(),
        }
    }

    /// The same with the resources of NVIDIA's plugins that listen in the kubelet's directory.
    #[must_use]
    pub fn beside(self, plugins: BTreeSet<String>) -> Self {
        Self { plugins, ..self }
    }

    /// Resources of NVIDIA's plugins that listen in the kubelet's directory, registered or not.
    #[must_use]
    pub fn plugins(&self) -> &BTreeSet<String> {
        &self.plugins
    }

    /// What is there for certain; others may be there too.
    #[must_use]
    pub fn shown(&self) -> Option<&KubeletDevices> {
        self.answer.as_ref().ok()
    }

    /// Everything that is there: what it does not name is absent.
    #[must_use]
    pub fn complete(&self) -> Option<&KubeletDevices> {
        self.shown().filter(|_| self.settled)
    }

    /// Why there is no answer.
    #[must_use]
    pub fn silence(&self) -> Option<&str> {
        self.answer.as_ref().err().map(String::as_str)
    }

    /// Who answered, where that was one and the same kubelet.
    #[must_use]
    pub fn socket(&self) -> Option<&SocketId> {
        self.socket.as_ref()
    }
}

#[cfg(test)]
mod tests;
