//! Repositories as files of the package manager: a deb822 `.sources` file with its own key (`sources.list(5)`), or a
//! `.repo` file with `gpgcheck=1` (`dnf.conf(5)`, zypper reads the same). Pure.
//!
//! Each repository has files of its own, named by a hash of its content, so that nothing of anybody else's is written
//! over, and a restore removes exactly these.

use std::fmt::Write as _;

use crds::cluster::PackageRepository;
use host::facts::install::packages::Manager;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::key::{self, KeyError};

/// A repository, checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Repository {
    /// `https://…`.
    pub url: String,
    /// What signs it.
    pub key: SigningKey,
    /// Suite, for apt; `None`: a flat repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Components, for apt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
}

/// What signs a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SigningKey {
    /// The key itself, armoured.
    Text(String),
    /// Where the package manager finds it; apt cannot.
    Url(String),
}

/// A repository that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    /// No `https://` URL.
    #[error("{field} `{value}`: write https://host/path, without user, query or fragment")]
    Url {
        /// The field.
        field: &'static str,
        /// What it is.
        value: String,
    },
    /// No suite or component.
    #[error(
        "{field} `{value}`: write letters, digits and . _ / - only, beginning with a letter or digit"
    )]
    Word {
        /// The field.
        field: &'static str,
        /// What it is.
        value: String,
    },
    /// No key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// apt takes keys from files only.
    #[error(
        "signingKey is a URL and this host uses apt, which does not fetch keys: write the armoured key itself"
    )]
    KeyUrl,
}

/// A file of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryFile {
    /// Path below the root.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl Repository {
    /// Checks what the cluster says.
    pub fn new(asked: &PackageRepository) -> Result<Self, RepositoryError> {
        let url = checked_url("url", &asked.url)?;
        let key = if asked.signing_key.starts_with("https://") {
            SigningKey::Url(checked_url("signingKey", &asked.signing_key)?)
        } else {
            SigningKey::Text(key::armoured(&asked.signing_key)?)
        };
        let suite = asked.suite.as_deref().map(|text| word("suite", text));
        let components = asked.components.iter().map(|text| word("components", text));
        Ok(Self {
            url,
            key,
            suite: suite.transpose()?,
            components: components.collect::<Result<_, _>>()?,
        })
    }

    /// Whether the package manager can use it.
    pub fn usable(&self, manager: Manager) -> Result<(), RepositoryError> {
        match (manager, &self.key) {
            (Manager::Apt, SigningKey::Url(_)) => Err(RepositoryError::KeyUrl),
            _ => Ok(()),
        }
    }

    /// The name of its files: the same content, the same name.
    #[must_use]
    pub fn id(&self) -> String {
        let (SigningKey::Text(key) | SigningKey::Url(key)) = &self.key;
        let suite = self.suite.as_deref().unwrap_or_default();
        let parts = [self.url.as_str(), key, suite, &self.components.join(" ")];
        let digest = Sha256::digest(parts.join("\n").as_bytes());
        let mut hex = String::new();
        for byte in digest.iter().take(6) {
            _ = write!(hex, "{byte:02x}");
        }
        format!("gpurdma-{hex}")
    }

    /// The file that describes it.
    #[must_use]
    pub fn file(&self, manager: Manager) -> String {
        let id = self.id();
        match manager {
            Manager::Apt => format!("/etc/apt/sources.list.d/{id}.sources"),
            Manager::Dnf => format!("/etc/yum.repos.d/{id}.repo"),
            Manager::Zypper => format!("/etc/zypp/repos.d/{id}.repo"),
        }
    }

    /// The file that its key is in, where it has one.
    #[must_use]
    pub fn key_file(&self, manager: Manager) -> String {
        let id = self.id();
        match manager {
            Manager::Apt => format!("/etc/apt/keyrings/{id}.asc"),
            Manager::Dnf | Manager::Zypper => format!("/etc/pki/rpm-gpg/{id}.asc"),
        }
    }

    /// Its files, the key first: a description never names a key that is not there.
    #[must_use]
    pub fn files(&self, manager: Manager) -> Vec<RepositoryFile> {
        let key = match &self.key {
            SigningKey::Text(text) => Some(RepositoryFile {
                path: self.key_file(manager),
                text: text.clone(),
            }),
            SigningKey::Url(_) => None,
        };
        let text = match manager {
            Manager::Apt => self.sources(),
            Manager::Dnf | Manager::Zypper => self.repo(manager),
        };
        let description = RepositoryFile {
            path: self.file(manager),
            text,
        };
        key.into_iter().chain([description]).collect()
    }

    fn sources(&self) -> String {
        let (url, key) = (&self.url, self.key_file(Manager::Apt));
        // A suite that ends with a slash is a path, and a path has no components.
        let place = match &self.suite {
            None => "Suites: ./\n".to_owned(),
            Some(path) if path.ends_with('/') => format!("Suites: {path}\n"),
            Some(suite) if self.components.is_empty() => {
                format!("Suites: {suite}\nComponents: main\n")
            }
            Some(suite) => format!(
                "Suites: {suite}\nComponents: {}\n",
                self.components.join(" ")
            ),
        };
        format!("{HEAD}Types: deb\nURIs: {url}\n{place}Signed-By: {key}\n")
    }

    fn repo(&self, manager: Manager) -> String {
        let (id, url) = (self.id(), &self.url);
        let key = match &self.key {
            SigningKey::Text(_) => format!("file://{}", self.key_file(manager)),
            SigningKey::Url(url) => url.clone(),
        };
        format!(
            "{HEAD}[{id}]\nname={id}\nbaseurl={url}\nenabled=1\ngpgcheck=1\nsslverify=1\ngpgkey={key}\n"
        )
    }
}

/// Stands at the top of every file.
const HEAD: &str = "# Written for driver.hostPackages of a GpuRdmaCluster, and removed with it.\n";

/// The CRD's own rule once more: this text becomes a line of a file.
fn checked_url(field: &'static str, text: &str) -> Result<String, RepositoryError> {
    let rest = text.strip_prefix("https://").unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (name, port) = host.split_once(':').unwrap_or((host, "443"));
    let of = |text: &str, others: &[u8]| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
    };
    let valid = !name.is_empty()
        && of(name, b".-")
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && of(path, b"._~%/+-");
    if valid {
        Ok(text.to_owned())
    } else {
        let value = text.to_owned();
        Err(RepositoryError::Url { field, value })
    }
}

fn word(field: &'static str, text: &str) -> Result<String, RepositoryError> {
    if super::plain(text, 128, b"._/-") {
        Ok(text.to_owned())
    } else {
        let value = text.to_owned();
        Err(RepositoryError::Word { field, value })
    }
}

#[cfg(test)]
mod tests;
