//! What could not be written, by object. Pure.

use std::collections::BTreeMap;

use super::PARALLEL;
use crate::conditions::listed;
use crate::error::{Category, Error};

/// Failed writes. One failing node is no reason to stop the others; a server that answers nobody is.
#[derive(Debug, Default)]
pub(super) struct Failures {
    first: BTreeMap<String, Error>,
    unavailable: usize,
}

impl Failures {
    /// Keeps the result of a write, and says whether it succeeded.
    pub(super) fn note<T>(&mut self, object: &str, result: Result<T, Error>) -> bool {
        let Err(error) = result else {
            return true;
        };
        if error.category() == Category::Unavailable {
            self.unavailable += 1;
        }
        self.first.entry(object.to_owned()).or_insert(error);
        false
    }

    /// Whether a write of this object failed: what follows from it must wait.
    pub(super) fn of(&self, object: &str) -> bool {
        self.first.contains_key(object)
    }

    /// Whether nothing failed.
    pub(super) fn none(&self) -> bool {
        self.first.is_empty()
    }

    /// Whether the server rather than an object is to blame: each further request would only wait for its timeout.
    pub(super) const fn hopeless(&self) -> bool {
        self.unavailable >= PARALLEL
    }

    /// One error for all of them.
    pub(super) fn into_error(mut self) -> Option<Error> {
        let names: Vec<_> = self.first.keys().map(String::as_str).collect();
        let (objects, names) = (names.len(), listed(&names));
        let (_, first) = self.first.pop_first()?;
        if objects == 1 {
            return Some(first);
        }
        Some(Error::Several {
            objects,
            names,
            first: Box::new(first),
        })
    }
}
