//! What brings an installed driver into effect, and what must not happen meanwhile.

use super::history::{job, set_packages};
use super::*;

fn installed_not_loaded() -> Fixture {
    Fixture::open_driver()
        .installed("doca-ofed", package("2.9.3-1"))
        .not_in_effect()
}

#[test]
fn installed_modules_come_into_effect_by_openibd() {
    golden(
        "activate",
        &installed_not_loaded(),
        &packages("2.9.3-1", &[], Vec::new()),
    );
}

#[test]
fn a_node_whose_own_network_is_on_the_nic_reboots_instead() {
    // O63: openibd takes the NIC away that the node itself depends on.
    golden(
        "activate_protected",
        &installed_not_loaded().protected(),
        &packages("2.9.3-1", &[], Vec::new()),
    );
}

#[test]
fn an_unexpected_holder_is_named() {
    // O4, O8: `irdma` and storage modules hold the RDMA core.
    let held = installed_not_loaded().holder("irdma");
    golden(
        "activate_holder",
        &held,
        &packages("2.9.3-1", &[], Vec::new()),
    );
}

#[test]
fn a_loaded_peermem_that_could_not_come_back_stops_the_restart() {
    // G4, O2: network driver, GPU driver, peermem: in this order.
    let stale = installed_not_loaded()
        .loaded("nvidia_peermem")
        .checksums(Some(8), Some(7))
        .not_in_effect();
    golden(
        "activate_stale_peermem",
        &stale,
        &packages("2.9.3-1", &[], Vec::new()),
    );
    let theirs = installed_not_loaded()
        .loaded("nvidia_peermem")
        .gpu_operator();
    golden(
        "activate_their_peermem",
        &theirs,
        &packages("2.9.3-1", &[], Vec::new()),
    );
}

#[test]
fn a_restart_of_openibd_is_settled_after_it_took_effect() {
    let desired = packages("2.9.3-1", &[], Vec::new());
    let change = Change::Driver(DriverChange::ActivateDriver {
        way: crate::action::Activation::Openibd,
        version: "24.10-1.1.4".to_owned(),
    });
    let mut running = installed_not_loaded();
    running.state.job = Some(job(&change, true));
    golden("activate_runs", &running, &desired);
    let mut ended = Fixture::open_driver().installed("doca-ofed", package("2.9.3-1"));
    ended.state.job = Some(job(&change, false));
    golden("activate_ended", &ended, &desired);
}

#[test]
fn no_module_is_loaded_while_openibd_unloads_them() {
    let mut running = Fixture::closed_driver();
    let change = set_packages(&packages("2.9.3-1", &[], Vec::new()));
    running.state.job = Some(job(&change, true));
    let plan = planned(
        &running,
        &gpu_direct(GpuDirectMode::Auto),
        Memory::default(),
    );
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
}

#[test]
fn a_driver_of_others_that_is_not_in_effect_is_a_finding_only() {
    golden(
        "not_in_effect",
        &Fixture::open_driver().not_in_effect(),
        &of_driver(Driver::default()),
    );
}
