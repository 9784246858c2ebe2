//! One explicit root below which every path of the machine is read and written.
//!
//! Links are followed inside the root: an absolute target counts from the root, as a process that had changed its root
//! would see it, and a relative one that climbs above the root is refused. Only regular files are opened, so that a FIFO
//! or a device never blocks the reader. Errors name the operation and the path below the root.

mod beneath;
mod resolve;
mod write;

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use beneath::{Directory, Found};
use topology::fact::Fact;

/// Longest file that is read as a whole.
pub const READ_LIMIT: u64 = 1 << 20;

/// Longest file that is searched line by line (`/proc/kallsyms` has some 20 MiB).
pub const SEARCH_LIMIT: u64 = 256 << 20;

/// A directory that stands for `/` of the machine that is read.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
    /// The directory itself, opened at its first use: clones share it.
    directory: Arc<OnceLock<Directory>>,
}

impl PartialEq for Root {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Root {}

/// What tells that a file is another one or was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds since 1970.
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Why something below the root could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// The path, or what a link on it points to, does not exist.
    #[error("{operation} {path}: no such file or directory")]
    NotFound {
        /// What was tried.
        operation: &'static str,
        /// Path below the root.
        path: String,
    },
    /// `..` leads above the root.
    #[error("resolve {path}: `..` leads above the root; use a path or link that stays inside it")]
    AboveRoot {
        /// Path below the root.
        path: String,
    },
    /// More links than the kernel would follow.
    #[error("resolve {path}: more than {limit} symbolic links, probably a cycle")]
    TooManyLinks {
        /// Path below the root.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// A directory, FIFO, device or socket in the place of a file.
    #[error("read {path}: not a regular file but a {found}")]
    NotRegular {
        /// Path below the root.
        path: String,
        /// What stands there.
        found: &'static str,
    },
    /// A file longer than the limit.
    #[error("read {path}: longer than {limit} bytes")]
    TooLarge {
        /// Path below the root.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// A path without a file name.
    #[error("{operation} {path}: the path names no file")]
    NoFileName {
        /// What was tried.
        operation: &'static str,
        /// Path below the root.
        path: String,
    },
    /// Anything else that the kernel answered.
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

impl RootError {
    /// The error of an operation on a path.
    pub(crate) fn io(operation: &'static str, path: &str, source: std::io::Error) -> Self {
        let path = path.to_owned();
        if source.kind() == ErrorKind::NotFound {
            return Self::NotFound { operation, path };
        }
        Self::Io {
            operation,
            path,
            source,
        }
    }

    /// The error of a path at which nothing stands.
    fn unresolved(path: &str) -> Self {
        Self::NotFound {
            operation: "resolve",
            path: path.to_owned(),
        }
    }

    /// Whether nothing stands at the path.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// The message with that of its cause, on one line.
    #[must_use]
    pub fn chain(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// A result as a fact: not found is `Absent`, any other error `Unreadable`.
pub(crate) fn fact<T>(result: Result<T, RootError>) -> Fact<T> {
    match result {
        Ok(value) => Fact::Known(value),
        Err(error) if error.is_not_found() => Fact::Absent,
        Err(error) => Fact::Unreadable(error.chain()),
    }
}

impl Root {
    /// The machine below `path`: `/` on the machine itself, `/host` in the agent's pod.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            directory: Arc::default(),
        }
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where `path` lies on this machine, links not followed; `..` stops at the root.
    #[must_use]
    pub fn join(&self, path: &str) -> PathBuf {
        let mut inside = PathBuf::new();
        for component in Path::new(path).components() {
            match component {
                Component::Normal(name) => inside.push(name),
                Component::ParentDir => _ = inside.pop(),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        self.path.join(inside)
    }

    /// Content of a regular file.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, RootError> {
        let mut content = Vec::new();
        let file = self.open(path)?.take(READ_LIMIT + 1);
        let mut file = BufReader::new(file);
        file.read_to_end(&mut content)
            .map_err(|source| RootError::io("read", path, source))?;
        if content.len() as u64 > READ_LIMIT {
            return Err(RootError::TooLarge {
                path: path.to_owned(),
                limit: READ_LIMIT,
            });
        }
        Ok(content)
    }

    /// The first `limit` bytes of a regular file; no more is asked of the kernel, nor of a device behind the file.
    pub fn bytes_up_to(&self, path: &str, limit: u64) -> Result<Vec<u8>, RootError> {
        let mut content = Vec::new();
        let mut file = self.open(path)?.take(limit);
        file.read_to_end(&mut content)
            .map_err(|source| RootError::io("read", path, source))?;
        Ok(content)
    }

    /// Content of a regular file without the white space around it. Bytes that are no UTF-8 become `U+FFFD`.
    pub fn text(&self, path: &str) -> Result<String, RootError> {
        let content = self.bytes(path)?;
        Ok(String::from_utf8_lossy(&content).trim().to_owned())
    }

    /// [`Root::text`] as a fact: `Absent` where nothing stands, `Unreadable` for every other error.
    #[must_use]
    pub fn read(&self, path: &str) -> Fact<String> {
        fact(self.text(path))
    }

    /// Names in a directory, in byte order.
    pub fn list_dir(&self, path: &str) -> Result<Vec<String>, RootError> {
        Ok(self.inodes(path)?.into_keys().collect())
    }

    /// Names in a directory and the inode number of each, as the listing itself tells them; links are not followed.
    pub fn inodes(&self, path: &str) -> Result<BTreeMap<String, u64>, RootError> {
        let io = |source| RootError::io("list", path, source);
        let directory = match self.open_directory_beneath(path) {
            Found::There(directory) => Ok(directory),
            Found::Missing => return Err(RootError::unresolved(path)),
            Found::Unsure => beneath::open_directory(&self.join(&self.walk(path)?)),
        };
        let listed = directory.and_then(beneath::inodes);
        listed.map_err(|error| io(error.into()))
    }

    /// Stamps of the files in a directory, by name, or of the one file that stands there, by its last name. Links are
    /// followed by none of them.
    pub fn stamps(&self, path: &str) -> Result<BTreeMap<String, Stamp>, RootError> {
        let io = |source| RootError::io("stat", path, source);
        let real = self.join(&self.resolve(path)?);
        let own = std::fs::symlink_metadata(&real).map_err(io)?;
        if !own.is_dir() {
            return Ok([(last_name(path).to_owned(), Stamp::of(&own))].into());
        }
        let mut stamps = BTreeMap::new();
        for entry in std::fs::read_dir(real).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // One that went in between is seen to be gone.
            if let Ok(metadata) = entry.metadata() {
                stamps.insert(name, Stamp::of(&metadata));
            }
        }
        Ok(stamps)
    }

    /// [`Root::list_dir`] as a fact.
    #[must_use]
    pub fn entries(&self, path: &str) -> Fact<Vec<String>> {
        fact(self.list_dir(path))
    }

    /// Last name of a link's target; the target itself need not exist.
    #[must_use]
    pub fn read_link_name(&self, path: &str) -> Fact<String> {
        fact(self.link_target(path)).map(|target| last_name(&target).to_owned())
    }

    /// Whether a line of a regular file satisfies `wanted`; for files too long to hold.
    pub fn any_line(&self, path: &str, wanted: impl Fn(&str) -> bool) -> Result<bool, RootError> {
        let mut file = BufReader::new(self.open(path)?.take(SEARCH_LIMIT));
        let mut line = Vec::new();
        while file
            .read_until(b'\n', &mut line)
            .map_err(|source| RootError::io("read", path, source))?
            > 0
        {
            if wanted(String::from_utf8_lossy(&line).trim_end()) {
                return Ok(true);
            }
            line.clear();
        }
        Ok(false)
    }

    /// Calls `each` for every line of a regular file; for files too long to hold.
    pub(crate) fn each_line(
        &self,
        path: &str,
        mut each: impl FnMut(&str),
    ) -> Result<(), RootError> {
        let file = BufReader::new(self.open(path)?.take(SEARCH_LIMIT));
        for line in file.split(b'\n') {
            let line = line.map_err(|source| RootError::io("read", path, source))?;
            each(String::from_utf8_lossy(&line).trim_end());
        }
        Ok(())
    }

    /// When a file or directory was changed last, in seconds since 1970.
    #[must_use]
    pub fn modified(&self, path: &str) -> Fact<i64> {
        let metadata = self.resolve(path).and_then(|real| {
            std::fs::metadata(self.join(&real))
                .map_err(|source| RootError::io("stat", path, source))
        });
        fact(metadata).map(|metadata| metadata.mtime())
    }

    /// Opens a regular file, and nothing else.
    pub(crate) fn open(&self, path: &str) -> Result<File, RootError> {
        let io = |source| RootError::io("read", path, source);
        match self.open_beneath(path) {
            Found::There(file) => return Ok(file),
            Found::Missing => return Err(RootError::unresolved(path)),
            Found::Unsure => {}
        }
        let real = self.join(&self.walk(path)?);
        let kind = std::fs::symlink_metadata(&real).map_err(io)?.file_type();
        if !kind.is_file() {
            let found = if kind.is_dir() {
                "directory"
            } else {
                "device, pipe, socket or link"
            };
            return Err(RootError::NotRegular {
                path: path.to_owned(),
                found,
            });
        }
        File::open(real).map_err(io)
    }
}

/// Last component of a path.
pub(crate) fn last_name(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

#[cfg(test)]
mod tests;
