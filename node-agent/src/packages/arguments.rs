//! Argument lists for apt, dnf and zypper. Pure. Every name and version was checked by its grammar; `--` ends the options
//! all the same.
//!
//! Signatures are never switched off, keys are only those that were configured, holds and pins are obeyed, nothing is
//! downgraded, and configuration files that someone changed stay.

use host::facts::install::packages::Manager;

use super::repository::Repository;
use super::{PackageName, Wish, Wishes};

/// A program of the host with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Answers questions before they are asked, and makes messages readable for [`super::failure`].
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("LC_ALL", "C"),
    ("NEEDRESTART_MODE", "l"),
    ("NEEDRESTART_SUSPEND", "1"),
];

/// Options of every call of apt: what cannot be trusted is refused, and a lock is reported, not waited for.
const APT: &[&str] = &[
    "--yes",
    "--quiet",
    "--option=Acquire::AllowInsecureRepositories=false",
    "--option=Acquire::AllowWeakRepositories=false",
    "--option=Acquire::AllowDowngradeToInsecureRepositories=false",
    "--option=APT::Get::AllowUnauthenticated=false",
    "--option=Acquire::Retries=2",
    "--option=DPkg::Lock::Timeout=0",
    "--option=Dpkg::Options::=--force-confdef",
    "--option=Dpkg::Options::=--force-confold",
];

fn invocation(
    program: &'static str,
    options: &[&str],
    rest: impl IntoIterator<Item = String>,
) -> Invocation {
    let options = options.iter().map(|text| (*text).to_owned());
    Invocation {
        program,
        arguments: options.chain(rest).collect(),
    }
}

/// Brings what the package manager knows of `repositories` up to date; of all where there are none. Each call stands for
/// itself, so that someone else's broken repository stops nothing.
#[must_use]
pub fn refresh(manager: Manager, repositories: &[Repository]) -> Vec<Invocation> {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    match manager {
        Manager::Apt if repositories.is_empty() => {
            vec![invocation(
                "apt-get",
                APT,
                words(&["--option=APT::Update::Error-Mode=any", "update"]),
            )]
        }
        Manager::Apt => repositories.iter().map(refresh_apt).collect(),
        // dnf looks itself, with --refresh.
        Manager::Dnf => Vec::new(),
        Manager::Zypper => {
            let ids = repositories.iter().map(Repository::id);
            let rest = words(&["--non-interactive", "refresh", "--"]);
            vec![invocation("zypper", &[], rest.into_iter().chain(ids))]
        }
    }
}

/// Only the one file is read, and what is known of other repositories stays.
fn refresh_apt(repository: &Repository) -> Invocation {
    let file = format!(
        "--option=Dir::Etc::sourcelist={}",
        repository.file(Manager::Apt)
    );
    let rest = [
        "--option=APT::Update::Error-Mode=any",
        "--option=Dir::Etc::sourceparts=-",
        "--option=APT::Get::List-Cleanup=0",
    ];
    let rest = rest.map(str::to_owned).into_iter();
    invocation("apt-get", APT, rest.chain([file, "update".to_owned()]))
}

/// Makes packages as they are wished: what is to go first, then what is to come.
#[must_use]
pub fn change(manager: Manager, wishes: &Wishes) -> Vec<Invocation> {
    let gone: Vec<String> = wishes
        .iter()
        .filter(|(_, wish)| **wish == Wish::Absent)
        .map(|(name, _)| name.to_string())
        .collect();
    let wanted: Vec<String> = wishes
        .iter()
        .filter_map(|(name, wish)| specification(manager, name, wish))
        .collect();
    let calls = [
        (!gone.is_empty()).then(|| remove(manager, &gone)),
        (!wanted.is_empty()).then(|| install(manager, &wanted)),
    ];
    calls.into_iter().flatten().collect()
}

/// `name=version`, for dnf `name-version`.
fn specification(manager: Manager, name: &PackageName, wish: &Wish) -> Option<String> {
    let Wish::Version(version) = wish else {
        return None;
    };
    Some(match manager {
        Manager::Apt | Manager::Zypper => format!("{name}={version}"),
        Manager::Dnf => format!("{name}-{version}"),
    })
}

fn install(manager: Manager, wanted: &[String]) -> Invocation {
    let tail = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.into_iter().chain(wanted.iter().cloned())
    };
    match manager {
        Manager::Apt => invocation("apt-get", APT, tail(&["--no-remove", "install", "--"])),
        Manager::Dnf => invocation(
            "dnf",
            &["--assumeyes", "--refresh", "--setopt=gpgcheck=1"],
            tail(&["install", "--"]),
        ),
        // Keys that nobody configured are refused: `--gpg-auto-import-keys` is not given.
        Manager::Zypper => invocation("zypper", &["--non-interactive"], tail(&["install", "--"])),
    }
}

/// Nothing else is removed but what is named and what cannot be without it.
fn remove(manager: Manager, gone: &[String]) -> Invocation {
    let tail = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.into_iter().chain(gone.iter().cloned())
    };
    match manager {
        Manager::Apt => invocation("apt-get", APT, tail(&["remove", "--"])),
        Manager::Dnf => invocation(
            "dnf",
            &["--assumeyes", "--setopt=clean_requirements_on_remove=False"],
            tail(&["remove", "--"]),
        ),
        Manager::Zypper => invocation("zypper", &["--non-interactive"], tail(&["remove", "--"])),
    }
}

/// Ends what dpkg began before it was interrupted.
#[must_use]
pub fn go_on() -> Invocation {
    let rest = [
        "--force-confdef",
        "--force-confold",
        "--configure",
        "--pending",
    ];
    invocation("dpkg", &rest, [])
}

/// Makes a key known to RPM.
#[must_use]
pub fn import_key(path: &str) -> Invocation {
    invocation("rpm", &["--import"], [path.to_owned()])
}

#[cfg(test)]
mod tests;
