//! `device-plugin capture`: what `discover` reads of a machine, as a directory that can be looked at elsewhere.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use host::root::{Root, RootError};

/// A capture that was not made.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is no such directory.
    #[error("--root {0}: no such directory; name the one that holds sys and proc")]
    NoRoot(PathBuf),
    /// Old files would be taken for the machine's.
    #[error("--out {0}: not empty; name a new directory")]
    NotEmpty(PathBuf),
    /// It could not be made or looked into.
    #[error("--out {path}")]
    Out {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("copy the machine")]
    Copy(#[from] RootError),
}

/// Copies the machine below `root` into the new directory `out`; returns what could not be read.
pub fn capture(root: &Path, out: &Path) -> Result<Vec<String>, CaptureError> {
    if !root.is_dir() {
        return Err(CaptureError::NoRoot(root.to_owned()));
    }
    prepare(out)?;
    Ok(host::capture::capture(&Root::new(root), &Root::new(out))?)
}

fn prepare(out: &Path) -> Result<(), CaptureError> {
    let failed = |source| CaptureError::Out {
        path: out.to_owned(),
        source,
    };
    match std::fs::read_dir(out).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(_) => Err(CaptureError::NotEmpty(out.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(out).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests;
