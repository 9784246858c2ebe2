//! Reboots the host through its own systemd: `chroot ROOT systemctl reboot`. Who else works on the host is told and waited
//! for by systemd. Called by [`crate::apply`] once everything of a grant is prepared.

use std::time::Duration;

use crate::settings::Settings;
use host::program::{CommandError, Outcome, run};

/// How long systemd may take to say that it will.
const DEADLINE: Duration = Duration::from_secs(30);

/// Asks for the reboot; the host goes down some time after.
pub fn reboot(settings: &Settings) -> Result<Outcome, CommandError> {
    let root = settings.root.path().as_os_str();
    let arguments = [root, "systemctl".as_ref(), "reboot".as_ref()];
    run(settings.chroot.as_os_str(), &arguments, DEADLINE)
}
