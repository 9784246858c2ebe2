//! The plugin's sockets in the kubelet's device-plugins directory.
//!
//! Every registration gets a socket of a new name: some kubelets, when an old stream ends, drop the client that is
//! registered *now* under the same resource (kubernetes/kubernetes#121994), and later ones compare the path.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::UnixListener;
use topology::fact::Fact;

use crate::identity::{FileId, identify};

/// All sockets of this plugin begin so; no other file is ever touched.
pub const PREFIX: &str = "gpurdma-";
const SUFFIX: &str = ".sock";
/// A socket path has 107 bytes at most (`sun_path`), so the resource's part of the name is short.
const SLUG_BYTES: usize = 24;

/// A socket that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// bind(2) or listen(2).
    #[error("listen on {path}")]
    Bind {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Somebody removed it at once.
    #[error("{path} vanished right after it was made")]
    Vanished {
        /// The socket.
        path: PathBuf,
    },
}

/// One listening socket; its file is removed with the value, unless another file is there by then.
#[derive(Debug)]
pub struct Endpoint {
    path: PathBuf,
    name: String,
    id: FileId,
}

impl Endpoint {
    /// Listens on a new socket below `dir`.
    pub fn bind(dir: &Path, resource: &str) -> Result<(Self, UnixListener), EndpointError> {
        let name = fresh_name(resource);
        let path = dir.join(&name);
        let bound = UnixListener::bind(&path);
        let listener = bound.map_err(|source| EndpointError::Bind {
            path: path.clone(),
            source,
        })?;
        match identify(&path) {
            Fact::Known(id) => Ok((Self { path, name, id }, listener)),
            Fact::Absent | Fact::Unreadable(_) => Err(EndpointError::Vanished { path }),
        }
    }

    /// File name, as the kubelet wants it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the file is gone. A file that cannot be looked at is not gone.
    #[must_use]
    pub fn vanished(&self) -> bool {
        match identify(&self.path) {
            Fact::Known(id) => id != self.id,
            Fact::Absent => true,
            Fact::Unreadable(_) => false,
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if !self.vanished() {
            remove(&self.path);
        }
    }
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "socket could not be removed");
        }
        _ => {}
    }
}

fn fresh_name(resource: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    // A map's random state is seeded by the system, so names differ between runs too.
    let random = RandomState::new().hash_one(count);
    format!("{PREFIX}{}-{count}-{random:016x}{SUFFIX}", slug(resource))
}

fn slug(resource: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    resource.chars().map(safe).take(SLUG_BYTES).collect()
}

/// The sockets of this plugin in `dir`, sorted.
pub fn own_sockets(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut sockets = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        if is_socket && name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            sockets.push(entry.path());
        }
    }
    sockets.sort();
    Ok(sockets)
}

/// Removes sockets that a killed run left behind: those that nobody listens on.
pub fn remove_stale(dir: &Path) {
    let sockets = own_sockets(dir).unwrap_or_else(|error| {
        tracing::warn!(dir = %dir.display(), %error, "stale sockets could not be looked for");
        Vec::new()
    });
    for path in sockets.iter().filter(|path| is_deserted(path)) {
        tracing::info!(path = %path.display(), "removing a socket that an earlier run left behind");
        remove(path);
    }
}

/// Whether nobody listens on the socket.
#[must_use]
pub fn is_deserted(path: &Path) -> bool {
    let refused = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
    std::os::unix::net::UnixStream::connect(path).is_err_and(refused)
}

#[cfg(test)]
mod tests;
