//! Why a package manager failed, from what it says. Pure.
//!
//! Exit codes tell little: apt ends with 100 for everything, and `apt-get update` even with 0. The texts are those of
//! apt 2.6, dnf 4 and zypper 1.14 with `LC_ALL=C`; what matches nothing keeps its own words.

mod verdict;

use std::fmt;

pub use verdict::verdict;

/// Kinds of failure, each with another remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A lock is held by another process.
    LockHeld,
    /// dpkg was interrupted before.
    Interrupted,
    /// The disk is full.
    DiskFull,
    /// The file system is read-only.
    ReadOnly,
    /// A package is held at another version.
    Held,
    /// A newer version is installed.
    Downgrade,
    /// Other packages would have to go.
    WouldRemove,
    /// A repository's key is not known.
    UnknownKey,
    /// A repository or package is not signed.
    Unsigned,
    /// What was fetched is not what was signed.
    Altered,
    /// A name has no address.
    NameNotResolved,
    /// A server refused the connection.
    ConnectionRefused,
    /// A server did not answer in time.
    ConnectionTimedOut,
    /// A certificate is not trusted.
    Tls,
    /// A server wants other credentials.
    Unauthorised,
    /// A repository is not where it should be.
    RepositoryNotFound,
    /// No repository has the package in that version.
    PackageNotFound,
    /// Dependencies cannot be met.
    UnmetDependencies,
    /// A module did not compile for the kernel.
    ModuleBuild,
    /// A package's script failed.
    Script,
    /// Something else.
    Other,
}

/// A failure with the line that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// The line.
    pub evidence: String,
}

/// Kinds in the order in which they explain one another, with texts that show them: a held lock also leaves fetches
/// undone, an unknown key also makes a repository "not signed".
const TEXTS: &[(FailureKind, &[&str])] = &[
    (
        FailureKind::LockHeld,
        &[
            "Could not get lock",
            "Unable to acquire the dpkg frontend lock",
            "Unable to lock",
            "is locked by another process",
            "System management is locked",
            "Failed to obtain the transaction lock",
        ],
    ),
    (
        FailureKind::Interrupted,
        &[
            "dpkg was interrupted",
            "dpkg frontend is locked by a previous",
        ],
    ),
    (
        FailureKind::DiskFull,
        &[
            "No space left on device",
            "You don't have enough free space",
            "not enough free disk space",
            "more space needed on the",
        ],
    ),
    (FailureKind::ReadOnly, &["Read-only file system"]),
    (
        FailureKind::Held,
        &["Held packages were changed", "is locked and cannot be"],
    ),
    (
        FailureKind::Downgrade,
        &["Packages were downgraded and -y was used", "is a downgrade"],
    ),
    (
        FailureKind::WouldRemove,
        &["Packages need to be removed but remove is disabled"],
    ),
    (
        FailureKind::NameNotResolved,
        &[
            "Temporary failure resolving",
            "Could not resolve",
            "Couldn't resolve host",
            "Name or service not known",
        ],
    ),
    (
        FailureKind::ConnectionRefused,
        &[
            "Connection refused",
            "Failed to connect to",
            "Couldn't connect to server",
        ],
    ),
    (
        FailureKind::ConnectionTimedOut,
        &[
            "connection timed out",
            "Connection timed out",
            "Timeout was reached",
            "Operation too slow",
        ],
    ),
    (
        FailureKind::Tls,
        &[
            "Certificate verification failed",
            "certificate verify failed",
            "SSL certificate problem",
            "SSL peer certificate",
            "Could not handshake",
            "SSL connect error",
            "certificate is NOT trusted",
        ],
    ),
    (
        FailureKind::Unauthorised,
        &[
            "401  Unauthorized",
            "403  Forbidden",
            "Status code: 401",
            "Status code: 403",
            "error: 401",
            "error: 403",
        ],
    ),
    (
        FailureKind::UnknownKey,
        &[
            "NO_PUBKEY",
            "public key is not available",
            "EXPKEYSIG",
            "Public key for",
            "is signed with an unknown key",
            "not correct for this package",
            "Missing key",
        ],
    ),
    (
        FailureKind::Altered,
        &[
            "Hash Sum mismatch",
            "File has unexpected size",
            "BADSIG",
            "but checksum doesn't match",
            "Checksum doesn't match",
            "Digest verification failed",
            "does not verify",
            "Signature verification failed for file",
            "Clearsigned file isn't valid",
        ],
    ),
    (
        FailureKind::Unsigned,
        &[
            "is not signed",
            "no longer has a Release file",
            "unauthenticated packages",
            "cannot be authenticated",
            "is unsigned",
            "Signature verification failed",
        ],
    ),
    (
        FailureKind::RepositoryNotFound,
        &[
            "does not have a Release file",
            "404  Not Found",
            "Status code: 404",
            "Cannot download repomd.xml",
            "Failed to download metadata for repo",
            "Valid metadata not found",
        ],
    ),
    (
        FailureKind::PackageNotFound,
        &[
            "Unable to locate package",
            "was not found",
            "has no installation candidate",
            "No match for argument",
            "No provider of",
            "not found in package names",
        ],
    ),
    (
        FailureKind::UnmetDependencies,
        &[
            "unmet dependencies",
            "held broken packages",
            "Unable to correct problems",
            "nothing provides",
            "conflicting requests",
        ],
    ),
    (
        FailureKind::ModuleBuild,
        &["Bad return status for module build", "Error! Build of"],
    ),
    (
        FailureKind::Script,
        &[
            "script returned error exit status",
            "scriptlet failed",
            "Error in POSTIN",
        ],
    ),
];

/// The failure that a package manager's output shows.
#[must_use]
pub fn classify(output: &str) -> Failure {
    for (kind, texts) in TEXTS {
        let shows = |line: &&str| texts.iter().any(|text| line.contains(text));
        if let Some(line) = output.lines().find(shows) {
            return Failure {
                kind: *kind,
                evidence: line.trim().to_owned(),
            };
        }
    }
    let says = |line: &&str| line.starts_with("E: ") || line.starts_with("Error");
    let last = || output.lines().rfind(|line| !line.trim().is_empty());
    let evidence = output.lines().find(says).or_else(last).unwrap_or_default();
    Failure {
        kind: FailureKind::Other,
        evidence: evidence.trim().to_owned(),
    }
}

/// What happened, and what helps.
const WORDS: &[(FailureKind, &str, &str)] = &[
    (
        FailureKind::LockHeld,
        "another process holds the package manager's lock",
        "it is tried again; end that process if it hangs",
    ),
    (
        FailureKind::Interrupted,
        "dpkg was interrupted",
        "the next attempt runs `dpkg --configure --pending` first",
    ),
    (
        FailureKind::DiskFull,
        "the disk is full",
        "free space on the host's file system",
    ),
    (
        FailureKind::ReadOnly,
        "the file system is read-only",
        "see the kernel's log, or use a driver container on an image-based host",
    ),
    (
        FailureKind::Held,
        "a package is held",
        "the hold is obeyed: release it with `apt-mark unhold`, or ask for the held version",
    ),
    (
        FailureKind::Downgrade,
        "a newer version is installed",
        "nothing is downgraded: ask for the installed version, or downgrade by hand",
    ),
    (
        FailureKind::WouldRemove,
        "other packages would have to be removed",
        "remove them by hand, or ask for a version that goes with them",
    ),
    (
        FailureKind::NameNotResolved,
        "the repository's name has no address",
        "check the host's DNS, or mirror the repository",
    ),
    (
        FailureKind::ConnectionRefused,
        "the repository's server refused the connection",
        "check the address, the port and the proxy",
    ),
    (
        FailureKind::ConnectionTimedOut,
        "the repository's server did not answer",
        "check the route, the firewall and the proxy",
    ),
    (
        FailureKind::Tls,
        "the repository's certificate is not trusted",
        "add its authority to the host's trust store, or correct the host's clock",
    ),
    (
        FailureKind::Unauthorised,
        "the repository refused access",
        "check the host's credentials for it",
    ),
    (
        FailureKind::UnknownKey,
        "the repository is signed with another key",
        "write the right key to driver.hostPackages.repositories[].signingKey",
    ),
    (
        FailureKind::Altered,
        "what was fetched is not what was signed",
        "the mirror or the proxy changes or mixes files; nothing of it was installed",
    ),
    (
        FailureKind::Unsigned,
        "the repository or a package of it is not signed",
        "what is unsigned is refused: use a signed repository",
    ),
    (
        FailureKind::RepositoryNotFound,
        "there is no repository at the address",
        "check url, suite and components",
    ),
    (
        FailureKind::PackageNotFound,
        "no repository has the package in that version",
        "check driver.hostPackages.version, packages and repositories",
    ),
    (
        FailureKind::UnmetDependencies,
        "dependencies cannot be met",
        "ask for a version that is made for this distribution",
    ),
    (
        FailureKind::ModuleBuild,
        "a module did not compile for the kernel",
        "see /var/lib/dkms/*/*/build/make.log; use a driver version that supports this kernel, and install its headers",
    ),
    (
        FailureKind::Script,
        "a package's script failed",
        "see the log /var/lib/gpurdma/packages.log on the node",
    ),
];

/// What happened, and what helps.
fn words(kind: FailureKind) -> (&'static str, &'static str) {
    let row = WORDS.iter().find(|row| row.0 == kind);
    let other = (
        "the package manager failed",
        "see the log /var/lib/gpurdma/packages.log on the node",
    );
    row.map_or(other, |(_, what, remedy)| (what, remedy))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, remedy) = words(self.kind);
        let evidence: String = self.evidence.chars().take(160).collect();
        write!(f, "{what} (`{evidence}`); {remedy}")
    }
}

#[cfg(test)]
mod tests;
