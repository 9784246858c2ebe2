//! Which file a path leads to. A path says little about a socket: a kubelet that restarts fast leaves no moment in which
//! `kubelet.sock` is missing, and a file system may give the inode number of a deleted file to the next one.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use topology::fact::Fact;

/// A file: device, inode and the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl FileId {
    /// Device and inode alone: the change time of a directory moves with its entries.
    #[must_use]
    pub fn place(self) -> Self {
        Self {
            changed: (0, 0),
            ..self
        }
    }
}

/// The file that is at `path` now.
#[must_use]
pub fn identify(path: &Path) -> Fact<FileId> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) => Fact::Known(FileId {
            device: meta.dev(),
            inode: meta.ino(),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Fact::Absent,
        Err(error) => Fact::Unreadable(format!("stat {}: {error}", path.display())),
    }
}
