//! Packages of the host's distribution: names, versions, what is wished of them, and whether it is so. Pure; the
//! submodules are one topic each: [`arguments`] for the package manager, [`repository`] files, [`failure`] classes, and
//! [`database`], which asks `rpm` and is the only one that runs anything.
//!
//! Names and versions have a grammar in which nothing can be an option, a path or shell: they begin with a letter or a
//! digit (Debian policy 5.6.1 and 5.6.12; RPM's `build/parsePreamble.c`).

pub mod arguments;
pub mod database;
pub mod failure;
pub mod key;
pub mod repository;

use std::collections::BTreeMap;
use std::fmt;

use host::facts::install::packages::Package;
use serde::{Deserialize, Serialize};

/// Packages that are installed where the cluster names none (DOCA-Host's profile for RDMA).
pub const DEFAULT_PACKAGE: &str = "doca-ofed";

/// A package's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageName(String);

/// A package's version, as the package manager writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageVersion(String);

/// A text that is no name or version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrammarError {
    /// No name.
    #[error(
        "`{0}` is no package name: write 1 to 128 letters, digits, + . _ -, beginning with a letter or digit, as in doca-ofed"
    )]
    Name(String),
    /// No version.
    #[error(
        "`{0}` is no package version: write 1 to 64 letters, digits, + . ~ : _ -, beginning with a letter or digit, as in 3.2.2-1"
    )]
    Version(String),
}

fn plain(text: &str, most: usize, others: &[u8]) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    (1..=most).contains(&text.len())
        && text.bytes().all(allowed)
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

impl PackageName {
    /// Checks a name.
    pub fn new(text: &str) -> Result<Self, GrammarError> {
        if plain(text, 128, b"+._-") {
            Ok(Self(text.to_owned()))
        } else {
            Err(GrammarError::Name(text.to_owned()))
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PackageVersion {
    /// Checks a version.
    pub fn new(text: &str) -> Result<Self, GrammarError> {
        if plain(text, 64, b"+.~:_-") {
            Ok(Self(text.to_owned()))
        } else {
            Err(GrammarError::Version(text.to_owned()))
        }
    }

    /// The version.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `installed` is this version: the same text, or the same without what nobody writes, the epoch and, where
    /// this one has no revision, the revision.
    #[must_use]
    pub fn matches(&self, installed: &str) -> bool {
        let no_epoch = |text: &str| {
            text.split_once(':')
                .map_or(text.to_owned(), |(_, v)| v.to_owned())
        };
        let (wanted, found) = (no_epoch(&self.0), no_epoch(installed));
        let upstream = found
            .rsplit_once('-')
            .map(|(upstream, _)| upstream.to_owned());
        wanted == found || (!wanted.contains('-') && upstream.as_deref() == Some(wanted.as_str()))
    }
}

macro_rules! text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = GrammarError;

            fn try_from(text: String) -> Result<Self, GrammarError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }
    };
}

text!(PackageName);
text!(PackageVersion);

/// What is wished of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Wish {
    /// This version.
    Version(PackageVersion),
    /// Not installed.
    Absent,
}

/// What is wished of packages, by name.
pub type Wishes = BTreeMap<PackageName, Wish>;

/// Installed packages, as `host` or `rpm` tell them.
pub type Installed = BTreeMap<String, Package>;

/// The wishes that are not met.
#[must_use]
pub fn open(wishes: &Wishes, installed: &Installed) -> Wishes {
    wishes
        .iter()
        .filter(|(name, wish)| unmet_one(name, wish, installed.get(name.as_str())).is_some())
        .map(|(name, wish)| (name.clone(), wish.clone()))
        .collect()
}

/// What is not as wished, in words; `None` where all is.
#[must_use]
pub fn unmet(wishes: &Wishes, installed: &Installed) -> Option<String> {
    let unmet: Vec<String> = wishes
        .iter()
        .filter_map(|(name, wish)| unmet_one(name, wish, installed.get(name.as_str())))
        .collect();
    (!unmet.is_empty()).then(|| unmet.join(", "))
}

fn unmet_one(name: &PackageName, wish: &Wish, found: Option<&Package>) -> Option<String> {
    match (wish, found) {
        (Wish::Version(_), None) => Some(format!("{name} is not installed")),
        (Wish::Version(_), Some(found)) if found.broken.is_some() => {
            let state = found.broken.as_deref().unwrap_or_default();
            Some(format!("{name} {} is {state}", found.version))
        }
        (Wish::Version(wanted), Some(found)) if !wanted.matches(&found.version) => {
            Some(format!("{name} is {}", found.version))
        }
        (Wish::Absent, Some(found)) => Some(format!("{name} {} is installed", found.version)),
        (Wish::Version(_), Some(_)) | (Wish::Absent, None) => None,
    }
}

/// `doca-ofed=3.2.2, old absent`: wishes as a person reads them.
#[must_use]
pub fn shown(wishes: &Wishes) -> String {
    let one = |(name, wish): (&PackageName, &Wish)| match wish {
        Wish::Version(version) => format!("{name}={version}"),
        Wish::Absent => format!("{name} absent"),
    };
    wishes.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
