//! Who the uverbs devices belong to. An Allocate of eight devices asks for eight of them, so their files stay open. Does IO;
//! [`crate::keeper`] asks for all every second, [`crate::service`] for those of a call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use host::machine::verbs::{self, Held, VerbsOwner};
use host::root::Root;

/// So many files stay open: pairs are few, and copies of hundreds of virtual functions are looked up each time.
const HELD: usize = 64;

/// The uverbs devices below one root.
pub(crate) struct Owners {
    root: Root,
    held: Mutex<BTreeMap<u32, Arc<Held>>>,
}

impl Owners {
    pub(crate) fn new(root: Root) -> Self {
        Self {
            root,
            held: Mutex::default(),
        }
    }

    /// Who the device belongs to now.
    pub(crate) fn owner(&self, number: u32) -> VerbsOwner {
        let held = self.with(|held| held.get(&number).cloned());
        if let Some(owner) = held.and_then(|held| held.owner()) {
            return owner;
        }
        let new = Held::open(&self.root, number).map(Arc::new);
        self.with(|held| {
            held.remove(&number);
            if held.len() < HELD {
                held.extend(new.map(|new| (number, new)));
            }
        });
        verbs::owner(&self.root, number)
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<u32, Arc<Held>>) -> T) -> T {
        change(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
