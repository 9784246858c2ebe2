//! The kernel's own lookup, `openat2(2)` with `RESOLVE_BENEATH`: one step instead of one for each name. It refuses absolute
//! links and kernels before Linux 5.6 do not have it; there, and wherever it finds anything wrong, the walk decides.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

use super::Root;

/// File systems in which the kernel makes no device nodes: what stands there is opened at once.
const NO_DEVICES: [&str; 2] = ["/sys/", "/proc/"];

/// The root's own directory.
#[derive(Debug)]
pub(super) struct Directory {
    descriptor: OwnedFd,
    /// Where it is, every link followed.
    path: PathBuf,
}

/// What the kernel found.
pub(super) enum Found<T> {
    /// What stands there, every link followed.
    There(T),
    /// Nothing stands there.
    Missing,
    /// The walk has to look.
    Unsure,
}

impl<T> Found<T> {
    /// What stands there as something else, or the walk where it is not.
    fn and_then<U>(self, to: impl FnOnce(T) -> Option<U>) -> Found<U> {
        match self {
            Self::There(found) => to(found).map_or(Found::Unsure, Found::There),
            Self::Missing => Found::Missing,
            Self::Unsure => Found::Unsure,
        }
    }
}

impl Root {
    /// The path below the root that `path` stands for once every link is followed.
    pub(super) fn resolve_beneath(&self, path: &str) -> Found<String> {
        let Some(root) = self.directory() else {
            return Found::Unsure;
        };
        lookup(root, path, OFlag::O_PATH).and_then(|found| {
            let found = fs::read_link(name(&found)).ok()?;
            let below = found.strip_prefix(&root.path).ok()?.to_str()?;
            Some(format!("/{below}"))
        })
    }

    /// Opens a regular file. A device, which opening could wake, is opened for nothing but to be named; a FIFO without
    /// waiting for its other end.
    pub(super) fn open_beneath(&self, path: &str) -> Found<File> {
        let Some(root) = self.directory() else {
            return Found::Unsure;
        };
        if NO_DEVICES.iter().any(|start| path.starts_with(start)) {
            let at_once = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
            let opened = lookup(root, path, at_once);
            return opened.and_then(|file| is_regular(&file).then(|| file.into()));
        }
        let named = lookup(root, path, OFlag::O_PATH);
        named.and_then(|file| is_regular(&file).then(|| File::open(name(&file)).ok())?)
    }

    /// Opens a directory to list it.
    pub(super) fn open_directory_beneath(&self, path: &str) -> Found<Dir> {
        let Some(root) = self.directory() else {
            return Found::Unsure;
        };
        lookup(root, path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
            .and_then(|directory| Dir::from_fd(directory).ok())
    }

    /// Where a link points to, as it is written.
    pub(super) fn read_link_beneath(&self, path: &str) -> Found<String> {
        let Some(root) = self.directory() else {
            return Found::Unsure;
        };
        let link = lookup(root, path, OFlag::O_PATH | OFlag::O_NOFOLLOW);
        link.and_then(|link| Some(readlinkat(link, "").ok()?.to_string_lossy().into_owned()))
    }

    fn directory(&self) -> Option<&Directory> {
        if let Some(directory) = self.directory.get() {
            return Some(directory);
        }
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_DIRECTORY;
        let descriptor = open(&self.path, flags, Mode::empty()).ok()?;
        let path = fs::read_link(name(&descriptor)).ok()?;
        Some(
            self.directory
                .get_or_init(|| Directory { descriptor, path }),
        )
    }
}

fn lookup(root: &Directory, path: &str, flags: OFlag) -> Found<OwnedFd> {
    // The root itself is `.` too: an empty path has nothing at it for the kernel.
    let relative = format!("./{}", path.trim_start_matches('/'));
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let flags = flags | OFlag::O_CLOEXEC;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    match openat2(&root.descriptor, relative.as_str(), how) {
        Ok(file) => Found::There(file),
        Err(Errno::ENOENT) => Found::Missing,
        Err(_) => Found::Unsure,
    }
}

fn is_regular(file: &OwnedFd) -> bool {
    let kind = |stat: FileStat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    fstat(file).is_ok_and(|stat| kind(stat) == SFlag::S_IFREG)
}

/// Opens a directory whose links the walk has followed.
pub(super) fn open_directory(path: &Path) -> nix::Result<Dir> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Dir::open(path, flags, Mode::empty())
}

/// Names in a directory and the inode number of each.
pub(super) fn inodes(directory: Dir) -> nix::Result<BTreeMap<String, u64>> {
    let mut inodes = BTreeMap::new();
    for entry in directory {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if !matches!(name.as_ref(), "." | "..") {
            inodes.insert(name.into_owned(), entry.ino());
        }
    }
    Ok(inodes)
}

/// The name of a descriptor (proc(5)).
fn name(descriptor: &OwnedFd) -> PathBuf {
    Path::new("/proc/self/fd").join(descriptor.as_raw_fd().to_string())
}
