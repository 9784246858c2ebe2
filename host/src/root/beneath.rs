//! The kernel's own lookup, `openat2(2)` with `RESOLVE_BENEATH`: one step instead of one for each name. It refuses absolute
//! links and kernels before Linux 5.6 do not have it; there, and wherever it finds anything wrong, the walk decides.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::{Mode, SFlag, fstat};

/// What the kernel found.
pub(super) enum Found {
    /// What stands there, opened for nothing but to be named, and the root.
    There {
        /// The root.
        root: OwnedFd,
        /// What stands at the path, every link followed.
        file: OwnedFd,
    },
    /// Nothing stands there.
    Missing,
    /// The walk has to look.
    Unsure,
}

/// Looks a path up below a root.
pub(super) fn find(root: &Path, path: &str) -> Found {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let Ok(root) = open(root, flags | OFlag::O_DIRECTORY, Mode::empty()) else {
        return Found::Unsure;
    };
    // The root itself is `.` too: an empty path has nothing at it for the kernel.
    let relative = format!("./{}", path.trim_start_matches('/'));
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    match openat2(&root, relative.as_str(), how) {
        Ok(file) => Found::There { root, file },
        Err(Errno::ENOENT) => Found::Missing,
        Err(_) => Found::Unsure,
    }
}

/// Opens what was found, if it is a regular file.
pub(super) fn regular(file: &OwnedFd) -> Option<File> {
    let kind = SFlag::from_bits_truncate(fstat(file).ok()?.st_mode) & SFlag::S_IFMT;
    (kind == SFlag::S_IFREG).then_some(())?;
    File::open(name(file)).ok()
}

/// Where what was found lies below the root.
pub(super) fn path(root: &OwnedFd, file: &OwnedFd) -> Option<String> {
    let (root, file) = (
        fs::read_link(name(root)).ok()?,
        fs::read_link(name(file)).ok()?,
    );
    let below = file.strip_prefix(root).ok()?.to_str()?;
    Some(format!("/{below}"))
}

/// The name of a descriptor (proc(5)).
fn name(descriptor: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}
