//! One actor at a time: an advisory lock (`flock(2)`) on `/run/gpurdma/agent.lock`, held while actions run. The DaemonSet's
//! agent, `node-agent apply` by hand and any other tool may take it; who holds it stands in the file. The kernel lets it go
//! with the process, however that ends. Called by [`crate::cycle`] and the command line.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};

use host::root::{Root, RootError};
use k8s_openapi::jiff::Timestamp;

use crate::settings::{LOCK_FILE, RUN_DIR};

/// The lock; it ends with this value.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    /// A program that another thread starts just now has a copy of the descriptor until it runs, and would keep the lock.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "unlock {LOCK_FILE}");
        }
    }
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Someone else acts.
    #[error("{LOCK_FILE} is held by {by}: nothing is changed until it has ended")]
    Held {
        /// What the holder wrote.
        by: String,
    },
    /// Its directory could not be made.
    #[error(transparent)]
    Root(#[from] RootError),
    /// A system call failed.
    #[error("{operation} {LOCK_FILE}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
}

/// Takes the lock for `who`, or says who has it. Waits for nobody.
pub fn take(root: &Root, who: &str, now: Timestamp) -> Result<Lock, LockError> {
    root.create_dir_all(RUN_DIR)?;
    let io = |operation| move |source| LockError::Io { operation, source };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(root.join(LOCK_FILE))
        .map_err(io("open"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(held(&mut file)),
        Err(TryLockError::Error(source)) => return Err(io("lock")(source)),
    }
    let text = format!("{who}, pid {}, since {now}\n", std::process::id());
    file.set_len(0).map_err(io("write"))?;
    file.rewind().map_err(io("write"))?;
    file.write_all(text.as_bytes()).map_err(io("write"))?;
    Ok(Lock { file })
}

fn held(file: &mut File) -> LockError {
    let mut text = String::new();
    let read = file.take(256).read_to_string(&mut text);
    let by = match (read, text.trim()) {
        (Ok(_), named) if !named.is_empty() => named.to_owned(),
        _ => "someone who did not say who".to_owned(),
    };
    LockError::Held { by }
}

#[cfg(test)]
mod tests;
