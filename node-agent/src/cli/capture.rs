//! `capture`: a copy of the host that can be shown around. Which files and answers, and what is masked, is
//! [`host::capture`]'s; here is only where it goes.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail};
use host::root::Root;

use crate::settings::Settings;

/// Copies the host into the directory `out`, which has nothing in it yet: old files would be taken for the host's.
pub(super) fn capture(settings: &Settings, out: &Path) -> anyhow::Result<()> {
    match std::fs::read_dir(out).map(Iterator::count) {
        Ok(0) => {}
        Ok(_) => bail!("--out {}: not empty; name a new directory", out.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => std::fs::create_dir_all(out)
            .with_context(|| format!("--out {}: create it", out.display()))?,
        Err(error) => {
            return Err(error).with_context(|| format!("--out {}: look into it", out.display()));
        }
    }
    let left_out =
        host::capture::capture(&settings.root, &Root::new(out)).context("copy the host")?;
    for line in &left_out {
        println!("left out: {line}");
    }
    println!("captured into {}", out.display());
    Ok(())
}
