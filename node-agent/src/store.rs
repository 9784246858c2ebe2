//! The agent's files below the root: JSON state, and whole files that are written only on change. The only place of the
//! agent that writes to the host; called by [`crate::apply`] and [`crate::execute`].

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

use host::root::{Root, RootError};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Reading or writing below the root failed.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The file is not what the agent writes.
    #[error("read {path}: not what this version writes")]
    Parse {
        /// Path below the root.
        path: String,
        /// What the parser said.
        #[source]
        source: serde_json::Error,
    },
    /// The file is no text.
    #[error("read {path}: not UTF-8")]
    Encoding {
        /// Path below the root.
        path: String,
    },
    /// A value that has no JSON form.
    #[error("write {path}: no JSON form")]
    Render {
        /// Path below the root.
        path: String,
        /// What the serialiser said.
        #[source]
        source: serde_json::Error,
    },
    /// The file could not be read, so it may hold something that is worth keeping.
    #[error(
        "write {path}: it cannot be read, so it is not written over; see what is wrong with it, or remove it"
    )]
    LeftAlone {
        /// Path below the root.
        path: String,
    },
    /// A system call failed.
    #[error("{operation} {path}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// Path below the root.
        path: String,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
}

impl StoreError {
    /// The message with that of its cause, on one line.
    #[must_use]
    pub fn chain(&self) -> String {
        match self {
            Self::Root(error) => error.chain(),
            Self::Parse { source, .. } | Self::Render { source, .. } => format!("{self}: {source}"),
            Self::Io { source, .. } => format!("{self}: {source}"),
            Self::Encoding { .. } | Self::LeftAlone { .. } => self.to_string(),
        }
    }

    /// Whether the file was read and holds something else than what the agent writes.
    #[must_use]
    pub fn is_of_content(&self) -> bool {
        matches!(self, Self::Parse { .. } | Self::Encoding { .. })
    }
}

/// The text of a file, as it is; `None` where there is none.
pub fn read_text(root: &Root, path: &str) -> Result<Option<String>, StoreError> {
    match root.bytes(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(StoreError::Encoding {
                path: path.to_owned(),
            }),
        },
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// When a file was written last; `None` where that cannot be told.
#[must_use]
pub fn modified(root: &Root, path: &str) -> Option<Timestamp> {
    let real = root.resolve(path).ok()?;
    let time = fs::metadata(root.join(&real)).ok()?.modified().ok()?;
    Timestamp::try_from(time).ok()
}

/// A JSON file; `None` where there is none.
pub fn read_json<T: DeserializeOwned>(root: &Root, path: &str) -> Result<Option<T>, StoreError> {
    let Some(text) = read_text(root, path)? else {
        return Ok(None);
    };
    let parsed = serde_json::from_str(&text);
    parsed.map(Some).map_err(|source| StoreError::Parse {
        path: path.to_owned(),
        source,
    })
}

/// The text of a JSON file.
pub fn to_text<T: Serialize>(path: &str, value: &T) -> Result<String, StoreError> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|source| StoreError::Render {
        path: path.to_owned(),
        source,
    })?;
    Ok(text + "\n")
}

/// Writes a JSON file if its content changes; says whether it did.
pub fn write_json<T: Serialize>(root: &Root, path: &str, value: &T) -> Result<bool, StoreError> {
    write_text(root, path, &to_text(path, value)?)
}

/// Writes a file, and the directories above it, if its content changes; says whether it did. A file that cannot be read
/// is written anew.
pub fn write_text(root: &Root, path: &str, text: &str) -> Result<bool, StoreError> {
    if read_text(root, path).ok().flatten().as_deref() == Some(text) {
        return Ok(false);
    }
    if let Some((directory, _)) = path.rsplit_once('/') {
        root.create_dir_all(directory)?;
    }
    root.write_atomic(path, text.as_bytes())?;
    Ok(true)
}

/// Writes an attribute of sysfs or configfs, which must be there: in place, at once, without a file beside it.
pub fn write_attribute(root: &Root, path: &str, text: &str) -> Result<(), StoreError> {
    let real = root.join(&root.resolve(path)?);
    let opened = OpenOptions::new().write(true).truncate(true).open(real);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| StoreError::Io {
        operation: "write",
        path: path.to_owned(),
        source,
    })
}

/// Moves a file of the agent's own to `<path>.bad`, in place of an older one.
pub fn set_aside(root: &Root, path: &str) -> Result<(), StoreError> {
    let from = root.join(&root.resolve(path)?);
    let mut to = from.clone().into_os_string();
    to.push(".bad");
    fs::rename(from, to).map_err(|source| StoreError::Io {
        operation: "set aside",
        path: path.to_owned(),
        source,
    })
}

/// Writes bytes in the middle of a regular file that is there, in one call: registers of a device, not a file on disk.
pub fn write_at(root: &Root, path: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
    let target = root.join(&root.resolve(path)?);
    let io = |source| StoreError::Io {
        operation: "write",
        path: path.to_owned(),
        source,
    };
    let file = OpenOptions::new().write(true).open(target).map_err(io)?;
    let written = file.write_at(bytes, offset).map_err(io)?;
    if written == bytes.len() {
        return Ok(());
    }
    Err(io(std::io::Error::from(std::io::ErrorKind::WriteZero)))
}

/// Replaces a file of the host at once, with its mode and owner kept; links are followed inside the root. A new file
/// gets 0644.
pub fn replace_host_file(root: &Root, path: &str, text: &str) -> Result<(), StoreError> {
    let real = match root.resolve(path) {
        Ok(real) => real,
        Err(error) if error.is_not_found() => {
            write_text(root, path, text)?;
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let io = |operation| {
        move |source| StoreError::Io {
            operation,
            path: path.to_owned(),
            source,
        }
    };
    let target = root.join(&real);
    let before = fs::metadata(&target).map_err(io("stat"))?;
    let temporary = target.with_extension(format!("gpurdma-{}", std::process::id()));
    let written =
        write_like(&temporary, &before, text).and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        // The error that counts is the first one.
        _ = fs::remove_file(&temporary);
    }
    written.map_err(io("replace"))?;
    target
        .parent()
        .map_or(Ok(()), sync_directory)
        .map_err(io("sync directory of"))
}

fn write_like(path: &Path, like: &fs::Metadata, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    chown(path, Some(like.uid()), Some(like.gid()))?;
    file.set_permissions(Permissions::from_mode(like.mode() & 0o7777))?;
    file.sync_all()
}

fn sync_directory(directory: &Path) -> std::io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
