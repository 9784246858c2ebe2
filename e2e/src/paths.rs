//! Where things lie: the repository, the cache that survives, the work folder of one cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// Root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `$GPURDMA_CACHE`, else `$XDG_CACHE_HOME/gpurdma`, else `~/.cache/gpurdma`: built tools and root file systems.
pub fn cache() -> Result<PathBuf> {
    let folder = std::env::var_os("GPURDMA_CACHE")
        .map(PathBuf::from)
        .or_else(|| {
            let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let base =
                base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
            Some(base?.join("gpurdma"))
        });
    let folder = folder.context("no cache folder: set GPURDMA_CACHE or HOME")?;
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    Ok(folder)
}

/// Work folder of the cluster of that name: state, logs, the nodes' disks.
#[must_use]
pub fn work(cluster: &str) -> PathBuf {
    Path::new("/var/tmp/gpurdma-e2e").join(cluster)
}

/// Folder for what a person wants to look at afterwards: pictures, tables.
pub fn out() -> Result<PathBuf> {
    let folder = repository().join("e2e/out");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    Ok(folder)
}

/// sha256 of a text or a file's content, in hex.
#[must_use]
pub fn sha256(content: impl AsRef<[u8]>) -> String {
    use std::fmt::Write;
    let digest = Sha256::digest(content);
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
