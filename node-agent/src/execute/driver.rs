//! Carries out and verifies changes of the RDMA driver and of what makes GPU memory reachable for it. Called by [`super`] only.

use super::ExecuteError;
use crate::action::DriverChange;
use crate::host_state::HostState;
use crate::settings::Settings;

/// Makes the change; the caller verifies it.
pub(super) fn perform(
    _settings: &Settings,
    _state: &HostState,
    change: &DriverChange,
) -> Result<(), ExecuteError> {
    match *change {}
}

/// Reads again whether the change has its effect; the error says what is there instead.
pub(super) fn verify(_settings: &Settings, change: &DriverChange) -> Result<(), String> {
    match *change {}
}
