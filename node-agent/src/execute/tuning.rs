//! Carries out and verifies changes of the host around the NICs: PCIe, firmware, firewall, RDMA namespaces. Called by [`super`] only.

use super::ExecuteError;
use crate::action::TuningChange;
use crate::host_state::HostState;
use crate::settings::Settings;

/// Makes the change; the caller verifies it.
pub(super) fn perform(
    _settings: &Settings,
    _state: &HostState,
    change: &TuningChange,
) -> Result<(), ExecuteError> {
    match *change {}
}

/// Reads again whether the change has its effect; the error says what is there instead.
pub(super) fn verify(_settings: &Settings, change: &TuningChange) -> Result<(), String> {
    match *change {}
}
