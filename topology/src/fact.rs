//! A value that was read, that is not there, or that could not be read: three different things.

use serde::{Deserialize, Serialize};

/// The outcome of looking for a value. `Unreadable` is never treated as `Absent`, and neither as zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fact<T> {
    /// The value was read.
    Known(T),
    /// Whoever looked could look, and there was nothing.
    Absent,
    /// Looking failed; the text says why (operation, path, error).
    Unreadable(String),
}

impl<T> Fact<T> {
    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// The same outcome with the value converted.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(convert(value)),
            Self::Absent => Fact::Absent,
            Self::Unreadable(why) => Fact::Unreadable(why),
        }
    }
}

/// Nobody looked: neither a value nor its absence may be taken from that.
impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unreadable("nobody looked for it".to_owned())
    }
}

impl<T> From<Option<T>> for Fact<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }
}
