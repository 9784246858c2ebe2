//! What the agent changed on this host, with the old values, in `/var/lib/gpurdma/journal.json`: the source of a
//! restore, and how a later change by someone else is recognised. Pure; [`crate::apply`] writes the file.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::action::{Change, Explain, Lasts};
use crate::modules::ModuleName;

/// Everything that was changed and not restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    /// Modules that the agent loaded.
    pub modules: BTreeMap<ModuleName, LoadedModule>,
    /// Keys that the agent set in openib.conf.
    pub openib_conf: BTreeMap<String, SetKey>,
    /// Every other change, by [`Change::place`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changed: BTreeMap<String, Changed>,
}

/// A change and what undoes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// What the agent did last.
    pub done: Change,
    /// What brings back the state from before the agent first changed it.
    pub undo: Change,
    /// The boot in which it was done.
    pub boot_id: String,
    /// When.
    pub at: Time,
    /// Whether the agent stands by it: another value means that someone else changed it.
    pub asserted: bool,
}

impl Changed {
    /// Whether what was done should still be there by itself in the boot `boot_id`.
    #[must_use]
    pub fn lasts(&self, boot_id: &str) -> bool {
        match self.done.lasts() {
            Lasts::Always => true,
            Lasts::Boot => self.boot_id == boot_id,
            Lasts::Device => false,
        }
    }

    /// Whether what was done can still be there in the boot `boot_id`.
    #[must_use]
    pub fn may_be_there(&self, boot_id: &str) -> bool {
        self.done.lasts() == Lasts::Always || self.boot_id == boot_id
    }
}

/// A module that the agent loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadedModule {
    /// The boot in which it was loaded.
    pub boot_id: String,
    /// When.
    pub at: Time,
    /// Whether the agent stands by it: gone in the same boot, it was unloaded by someone else.
    pub asserted: bool,
}

/// A key that the agent set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetKey {
    /// Value before the agent first set it; `None`: it was not set.
    pub before: Option<String>,
    /// Value that the agent set last.
    pub after: String,
    /// The boot in which it was set.
    pub boot_id: String,
    /// When.
    pub at: Time,
    /// systemd's invocation of openibd at that time: another one has read the file since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openibd: Option<String>,
    /// Whether the agent stands by it: another value means that someone else changed it.
    pub asserted: bool,
}

impl Journal {
    /// Forgets that values were ours to defend, after which each is set once more.
    pub fn release(&mut self) {
        self.modules
            .values_mut()
            .for_each(|entry| entry.asserted = false);
        self.openib_conf
            .values_mut()
            .for_each(|entry| entry.asserted = false);
        self.changed
            .values_mut()
            .for_each(|entry| entry.asserted = false);
    }

    /// Notes a change that is about to be made. The oldest undo is kept: it is what a restore goes back to. A change that
    /// brings that state back leaves nothing to restore.
    pub fn changing(&mut self, done: &Change, undo: &Change, boot_id: &str, at: Time) {
        let place = done.place();
        let first = self.changed.remove(&place).map(|entry| entry.undo);
        let undo = first.unwrap_or_else(|| undo.clone());
        if undo == *done {
            return;
        }
        let entry = Changed {
            done: done.clone(),
            undo,
            boot_id: boot_id.to_owned(),
            at,
            asserted: true,
        };
        self.changed.insert(place, entry);
    }

    /// Notes a module that is loaded and verified.
    pub fn module_loaded(&mut self, name: &ModuleName, boot_id: &str, at: Time) {
        let entry = LoadedModule {
            boot_id: boot_id.to_owned(),
            at,
            asserted: true,
        };
        self.modules.insert(name.clone(), entry);
    }

    /// Notes a key that is about to be set. The oldest `before` is kept: it is what a restore goes back to.
    pub fn key_set(&mut self, key: &str, set: SetKey) {
        let before = match self.openib_conf.get(key) {
            Some(first) => first.before.clone(),
            None => set.before.clone(),
        };
        self.openib_conf
            .insert(key.to_owned(), SetKey { before, ..set });
    }

    /// A key that has its first value again needs no restore.
    pub fn forget_restored(&mut self, key: &str) {
        if self
            .openib_conf
            .get(key)
            .is_some_and(|set| set.before.as_deref() == Some(&set.after))
        {
            self.openib_conf.remove(key);
        }
    }
}
