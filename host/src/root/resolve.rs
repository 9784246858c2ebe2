//! Links inside the root, followed as `openat2(2)` does with `RESOLVE_IN_ROOT`, save that climbing out is refused.

use std::fs;

use super::beneath::Found;
use super::{Root, RootError};

/// The kernel's own limit (`MAXSYMLINKS`, `include/linux/namei.h`).
const MAX_LINKS: usize = 40;

/// A path whose first components are resolved already.
struct Walk<'a> {
    asked: &'a str,
    done: Vec<String>,
    pending: Vec<String>,
    links: usize,
}

impl Root {
    /// The path below the root that `path` stands for once every link is followed: `/sys/devices/pci0000:00/…`.
    pub fn resolve(&self, path: &str) -> Result<String, RootError> {
        match self.resolve_beneath(path) {
            Found::There(found) => Ok(found),
            Found::Missing => Err(RootError::unresolved(path)),
            Found::Unsure => self.walk(path),
        }
    }

    /// [`Root::resolve`], name by name.
    pub(super) fn walk(&self, path: &str) -> Result<String, RootError> {
        let mut walk = Walk {
            asked: path,
            done: Vec::new(),
            pending: Vec::new(),
            links: 0,
        };
        walk.push(path);
        while let Some(name) = walk.pending.pop() {
            walk.step(self, name)?;
        }
        Ok(walk.path())
    }

    /// Where a link points to, as it is written.
    pub fn link_target(&self, path: &str) -> Result<String, RootError> {
        match self.read_link_beneath(path) {
            Found::There(target) => return Ok(target),
            Found::Missing => return Err(RootError::unresolved(path)),
            Found::Unsure => {}
        }
        let (parent, name) = split(path).ok_or_else(|| RootError::NoFileName {
            operation: "read link",
            path: path.to_owned(),
        })?;
        let link = self.join(&self.resolve(parent)?).join(name);
        let target =
            fs::read_link(link).map_err(|source| RootError::io("read link", path, source))?;
        Ok(target.to_string_lossy().into_owned())
    }
}

impl Walk<'_> {
    fn step(&mut self, root: &Root, name: String) -> Result<(), RootError> {
        if name == ".." {
            return self
                .done
                .pop()
                .map(drop)
                .ok_or_else(|| RootError::AboveRoot {
                    path: self.asked.to_owned(),
                });
        }
        self.done.push(name);
        let io = |source| RootError::io("resolve", self.asked, source);
        let here = root.join(&self.path());
        if !fs::symlink_metadata(&here).map_err(io)?.is_symlink() {
            return Ok(());
        }
        let target = fs::read_link(&here).map_err(io)?;
        self.follow(&target.to_string_lossy())
    }

    fn follow(&mut self, target: &str) -> Result<(), RootError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(RootError::TooManyLinks {
                path: self.asked.to_owned(),
                limit: MAX_LINKS,
            });
        }
        self.done.pop();
        if target.starts_with('/') {
            self.done.clear();
        }
        self.push(target);
        Ok(())
    }

    fn push(&mut self, path: &str) {
        let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
        self.pending.extend(names.rev().map(str::to_owned));
    }

    fn path(&self) -> String {
        format!("/{}", self.done.join("/"))
    }
}

/// A path's directory and last name.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.trim_end_matches('/').rsplit_once('/')?;
    (!matches!(name, "" | "." | "..")).then_some((parent, name))
}
