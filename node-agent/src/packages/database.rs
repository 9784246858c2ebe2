//! What is installed, where only the package manager's own tool can say it. Runs `rpm`; called by [`crate::gather`] and
//! [`crate::execute`].

use std::ffi::OsStr;
use std::time::Duration;

use host::facts::install::packages::{ASK_RPM, Package, Packages};
use topology::fact::Fact;

use super::Installed;
use crate::settings::Settings;
use host::program::{Outcome, ask};

/// How long the answer may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Installed packages: what `host` read or, where it could not, what `rpm` says.
#[must_use]
pub fn installed(settings: &Settings, packages: &Packages) -> Fact<Installed> {
    match &packages.installed.fact {
        Fact::Unreadable(why) if why == ASK_RPM => ask_rpm(settings),
        found => found.clone(),
    }
}

fn ask_rpm(settings: &Settings) -> Fact<Installed> {
    let format = "%{NAME}\\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\\n";
    let arguments = [
        settings.root.path().as_os_str(),
        OsStr::new("rpm"),
        OsStr::new("--query"),
        OsStr::new("--all"),
        OsStr::new("--queryformat"),
        OsStr::new(format),
    ];
    match ask(settings.chroot.as_os_str(), &arguments, &[], DEADLINE) {
        Ok((Outcome::Succeeded, text)) => Fact::Known(parse(&text)),
        Ok((Outcome::Failed { status, stderr }, _)) => {
            Fact::Unreadable(format!("rpm --query --all: {status}: {stderr}"))
        }
        Ok((Outcome::Unknown { waited }, _)) => Fact::Unreadable(format!(
            "rpm --query --all: no answer within {} s",
            waited.as_secs()
        )),
        Err(error) => Fact::Unreadable(crate::gather::chain(&error)),
    }
}

/// `name TAB epoch:version-release`; of a package that is there more than once, as kernels are, the last counts.
fn parse(text: &str) -> Installed {
    let package = |line: &str| {
        let (name, version) = line.split_once('\t')?;
        let version = version.strip_prefix("0:").unwrap_or(version).to_owned();
        let package = Package {
            version,
            held: false,
            broken: None,
        };
        Some((name.to_owned(), package))
    };
    text.lines().filter_map(package).collect()
}

#[cfg(test)]
mod tests;
