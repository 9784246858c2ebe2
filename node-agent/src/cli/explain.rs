//! Pages about findings: printed for a person, or written for the documentation.

use std::path::Path;

use anyhow::{Context, bail};

use crate::findings::catalogue::{closest, files, index, markdown, pages};

/// Prints the page of `name`, or the table of all.
pub(super) fn explain(name: Option<&str>) -> anyhow::Result<()> {
    let pages = pages()?;
    let Some(name) = name.map(str::to_uppercase) else {
        print!("{}", index(&pages));
        return Ok(());
    };
    let Some(page) = pages.get(&name) else {
        let near = match closest(&name, &pages).as_slice() {
            [] => "`node-agent explain` lists all".to_owned(),
            near => format!("the nearest: {}", near.join(", ")),
        };
        bail!("no finding {name}; {near}");
    };
    print!("{}", markdown(&name, page));
    Ok(())
}

/// Writes all pages into `directory`, and takes away those of findings that are no more.
pub(super) fn write(directory: &Path) -> anyhow::Result<()> {
    let files = files(&pages()?);
    std::fs::create_dir_all(directory)
        .with_context(|| format!("create {}", directory.display()))?;
    let there =
        std::fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))?;
    for entry in there {
        let path = entry
            .with_context(|| format!("read {}", directory.display()))?
            .path();
        let is_page = path.extension().is_some_and(|ending| ending == "md");
        let name = path.file_name().and_then(|name| name.to_str());
        if is_page && name.is_some_and(|name| !files.contains_key(name)) {
            std::fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
        }
    }
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}
