//! Whether a package manager that has ended says how, or was cut off. Pure; called by the executor for a run that it finds
//! ended.

use super::{Failure, FailureKind, classify};

/// How lines begin that tell of a failure, whatever it is.
const VERDICTS: &[&str] = &[
    "E: ",
    "Error",
    "Failed",
    "Installation of",
    "Problem: ",
    "Removal of",
    "dpkg: error",
];
/// What apt says of a dpkg that a signal ended (`apt-pkg/deb/dpkgpm.cc`).
const SIGNALLED: &str = "exited unexpectedly";

/// The failure that the output of a run shows which may have been cut off; `None` where it tells of none. Whoever is killed
/// says nothing any more, and the others no more than that.
#[must_use]
pub fn verdict(output: &str) -> Option<Failure> {
    let failure = classify(output);
    let tells = |line: &str| {
        let line = line.trim_start();
        VERDICTS.iter().any(|begin| line.starts_with(begin)) && !line.contains(SIGNALLED)
    };
    let told = failure.kind != FailureKind::Other || output.lines().any(tells);
    told.then_some(failure)
}
