//! Describes signed repositories to the host's package manager, and takes the descriptions away.

use host::facts::install::packages::Manager;
use host::root::Root;

use super::ask;
use crate::action::{Change, DriverChange};
use crate::execute::ExecuteError;
use crate::packages::arguments;
use crate::packages::repository::Repository;
use crate::planner::Memory;
use crate::settings::Settings;
use crate::store::{StoreError, read_text, write_text};

pub(super) fn describe(
    settings: &Settings,
    manager: Manager,
    repository: &Repository,
) -> Result<(), ExecuteError> {
    let root = &settings.root;
    for file in repository.files(manager) {
        write_text(root, &file.path, &file.text)?;
        make_readable(root, &file.path)?;
    }
    let key = repository.key_file(manager);
    if manager != Manager::Apt && root.resolve(&key).is_ok() {
        ask(settings, &arguments::import_key(&key))?;
    }
    Ok(())
}

/// apt reads sources and keys as a user of its own.
fn make_readable(root: &Root, path: &str) -> Result<(), StoreError> {
    let real = root.join(&root.resolve(path)?);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(real, mode).map_err(|source| StoreError::Io {
        operation: "set the mode of",
        path: path.to_owned(),
        source,
    })
}

/// The description first: one that names a key that is gone would break every other call of the package manager.
pub(super) fn forget(
    root: &Root,
    manager: Manager,
    repository: &Repository,
) -> Result<(), StoreError> {
    for file in repository.files(manager).iter().rev() {
        root.remove(&file.path)?;
    }
    Ok(())
}

pub(super) fn described(
    root: &Root,
    manager: Manager,
    repository: &Repository,
    there: bool,
) -> Result<(), String> {
    for file in repository.files(manager) {
        let found = read_text(root, &file.path).map_err(|error| error.chain())?;
        match (found, there) {
            (Some(text), true) if text == file.text => {}
            (Some(_), true) => return Err(format!("{} has other text", file.path)),
            (None, true) => return Err(format!("{} is not there", file.path)),
            (Some(_), false) => return Err(format!("{} is still there", file.path)),
            (None, false) => {}
        }
    }
    Ok(())
}

/// Repositories that this agent has described.
pub(super) fn described_by_us(memory: &Memory) -> Vec<Repository> {
    let repository = |change: &Change| match change {
        Change::Driver(DriverChange::SetRepository {
            repository,
            there: true,
            ..
        }) => Some(repository.clone()),
        _ => None,
    };
    let changes = memory.journal.changed.values();
    changes
        .filter_map(|entry| repository(&entry.done))
        .collect()
}
