//! Writing below the root: whole files, so that a reader sees the old content or the new, never a part.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::resolve::split;
use super::{Root, RootError};

impl Root {
    /// Replaces a file: temporary file beside it, fsync, rename, fsync of the directory. The directory must exist; a
    /// link at `path` is replaced, not followed.
    pub fn write_atomic(&self, path: &str, content: &[u8]) -> Result<(), RootError> {
        let (directory, name) = self.place(path)?;
        let temporary = directory.join(format!(".{name}.tmp-{}", std::process::id()));
        let io = |source| RootError::io("write", path, source);
        let written = write_synced(&temporary, content)
            .and_then(|()| fs::rename(&temporary, directory.join(name)));
        if written.is_err() {
            // The error that counts is the first one; a leftover is overwritten next time.
            _ = fs::remove_file(&temporary);
        }
        written.map_err(io)?;
        File::open(&directory)
            .and_then(|opened| opened.sync_all())
            .map_err(io)
    }

    /// Makes a directory and those above it; links on the way are followed inside the root.
    pub fn create_dir_all(&self, path: &str) -> Result<(), RootError> {
        match self.resolve(path) {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        if let Some((parent, _)) = split(path) {
            self.create_dir_all(parent)?;
        }
        let (directory, name) = self.place(path)?;
        match fs::create_dir(directory.join(name)) {
            Err(source) if source.kind() != ErrorKind::AlreadyExists => {
                Err(RootError::io("make directory", path, source))
            }
            _ => self.resolve(path).map(drop),
        }
    }

    /// Removes a file; that it is gone already is no error.
    pub fn remove(&self, path: &str) -> Result<(), RootError> {
        let place = match self.place(path) {
            Err(error) if error.is_not_found() => return Ok(()),
            place => place?,
        };
        match fs::remove_file(place.0.join(place.1)) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(RootError::io("remove", path, source))
            }
            _ => Ok(()),
        }
    }

    fn place<'a>(&self, path: &'a str) -> Result<(PathBuf, &'a str), RootError> {
        let no_name = || RootError::NoFileName {
            operation: "write",
            path: path.to_owned(),
        };
        let (parent, name) = split(path).ok_or_else(no_name)?;
        Ok((self.join(&self.resolve(parent)?), name))
    }
}

/// What fixtures are made of; nothing here is durable.
#[cfg(feature = "fixture")]
impl Root {
    /// Writes a file and the directories above it.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), RootError> {
        if let Some((parent, _)) = split(path) {
            self.create_dir_all(parent)?;
        }
        let (directory, name) = self.place(path)?;
        let target = directory.join(name);
        // A file that is written through a link could lie outside the root.
        if target.is_symlink() {
            fs::remove_file(&target).map_err(|source| RootError::io("write", path, source))?;
        }
        fs::write(target, content).map_err(|source| RootError::io("write", path, source))
    }

    /// Makes a relative link at `path` to `target`, both below the root, as sysfs has them.
    pub(crate) fn put_link(&self, path: &str, target: &str) -> Result<(), RootError> {
        if let Some((parent, _)) = split(path) {
            self.create_dir_all(parent)?;
        }
        let (directory, name) = self.place(path)?;
        let link = directory.join(name);
        let io = |source| RootError::io("link", path, source);
        if link.is_symlink() {
            fs::remove_file(&link).map_err(io)?;
        }
        std::os::unix::fs::symlink(relative(path, target), link).map_err(io)
    }
}

fn write_synced(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// `target` as seen from the directory of `link`.
#[cfg(feature = "fixture")]
fn relative(link: &str, target: &str) -> String {
    let from: Vec<_> = link.split('/').filter(|name| !name.is_empty()).collect();
    let to: Vec<_> = target.split('/').filter(|name| !name.is_empty()).collect();
    let from = &from[..from.len().saturating_sub(1)];
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = vec![".."; from.len() - common];
    [up, to[common..].to_vec()].concat().join("/")
}
