//! Debian root file systems for images: `mmdebstrap` over the machine's own package sources, cached by package list.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{cmd, paths, progress};

/// A tar archive with the packages and what they depend on, extracted but not configured.
pub fn debian(packages: &[String]) -> Result<PathBuf> {
    let suite = suite()?;
    let list = packages.join(",");
    let key = &paths::sha256(format!("{suite}:{list}"))[..12];
    let archive = paths::cache()?.join("rootfs").join(format!("{key}.tar"));
    if !archive.exists() {
        progress::step(&format!("root file system with {list}"), || {
            build(&suite, &list, &archive)
        })?;
    }
    Ok(archive)
}

fn build(suite: &str, list: &str, archive: &Path) -> Result<()> {
    let folder = archive.parent().context("an archive lies in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let part = archive.with_extension("part.tar");
    let mut command = cmd::command(
        "mmdebstrap",
        ["--variant=extract", &format!("--include={list}"), suite],
    );
    cmd::run(command.arg(&part).args(sources()?))?;
    std::fs::rename(&part, archive).with_context(|| format!("rename {}", part.display()))
}

/// The machine's own apt sources: whatever mirror it reaches.
fn sources() -> Result<Vec<PathBuf>> {
    let known = [
        "/etc/apt/sources.list.d/debian.sources",
        "/etc/apt/sources.list",
    ];
    let found: Vec<_> = known
        .iter()
        .map(PathBuf::from)
        .filter(|path| has_lines(path))
        .collect();
    if found.is_empty() {
        bail!(
            "no Debian package sources: neither {} has any",
            known.join(" nor ")
        );
    }
    Ok(found)
}

fn has_lines(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| {
        text.lines()
            .any(|line| !line.trim().is_empty() && !line.starts_with('#'))
    })
}

fn suite() -> Result<String> {
    let text = std::fs::read_to_string("/etc/os-release").context("read /etc/os-release")?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map(|name| name.trim_matches('"').to_owned())
        .context("/etc/os-release has no VERSION_CODENAME: not a Debian release")
}
