//! One plugin per node: two that register the same resources would take them from each other without end.
//!
//! The lock is a file in the kubelet's directory (a restarting kubelet deletes sockets only) and falls with its holder.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

const LOCK: &str = "gpurdma.lock";

/// Waits until this process is the only one; keep the file open as long as it serves.
pub(crate) async fn become_only(dir: &Path, retry: Duration) -> File {
    let path = dir.join(LOCK);
    let mut told = String::new();
    loop {
        match try_lock(&path) {
            Ok(file) => return file,
            Err(why) if why != told => {
                tracing::warn!(path = %path.display(), "waiting to be the only device plugin of this node: {why}");
                told = why;
            }
            Err(_) => {}
        }
        tokio::time::sleep(retry).await;
    }
}

fn try_lock(path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path);
    let file = opened.map_err(|error| format!("open: {error}"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err("another one holds the lock".to_owned()),
        Err(TryLockError::Error(error)) => Err(format!("lock: {error}")),
    }
}
