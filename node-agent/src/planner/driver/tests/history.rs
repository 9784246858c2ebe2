//! What a run of the package manager left behind, and the way back.

use super::*;
use crate::action::Blocked;

pub(super) fn set_packages(desired: &Desired) -> Change {
    let plan = planned(&Fixture::open_driver(), desired, Memory::default());
    let set = |change: &&Change| matches!(change, Change::Driver(DriverChange::SetPackages { .. }));
    plan.actions
        .iter()
        .map(|action| &action.change)
        .find(set)
        .unwrap()
        .clone()
}

pub(super) fn job(change: &Change, runs: bool) -> Seen {
    Seen {
        job: Job {
            change: change.attempt_key(),
            boot_id: "boot-1".to_owned(),
            at: Time("2026-03-01T11:58:00Z".parse().unwrap()),
            runner: Runner::Systemd,
            before: [].into(),
            last: true,
            attempt: 1,
        },
        runs,
    }
}

#[test]
fn an_installation_that_runs_is_waited_for_and_one_that_ended_is_settled() {
    let desired = packages("2.9.3-1", &[], Vec::new());
    let change = set_packages(&desired);
    let mut running = Fixture::open_driver();
    running.state.job = Some(job(&change, true));
    let mut memory = Memory::default().current(&desired);
    let undo = set_packages(&packages("9", &[], Vec::new()));
    let at = Time("2026-03-01T11:58:00Z".parse().unwrap());
    memory.journal.changing(&change, &undo, "boot-1", at);
    golden_after("installation_runs", &running, &desired, memory);
    let mut ended = Fixture::open_driver().installed("doca-ofed", package("2.9.3-1"));
    ended.state.job = Some(job(&change, false));
    golden("installation_ended", &ended, &desired);
}

/// The last attempt that there is must be judged too.
#[test]
fn neither_budget_nor_pause_holds_up_what_was_started() {
    let desired = packages("2.9.3-1", &[], Vec::new());
    let change = set_packages(&desired);
    let mut memory = Memory::default().current(&desired);
    (0..3).for_each(|_| memory.attempts.begin(&change, now()));
    let mut node = Fixture::open_driver();
    let mut seen = |runs: Option<bool>, memory: &Memory| {
        node.state.job = runs.map(|runs| job(&change, runs));
        let plan = planned(&node, &desired, memory.clone());
        let action = plan.actions.into_iter().find(|a| a.change == change);
        let action = action.unwrap();
        assert_eq!(action.last_error.is_some(), action.is_given_up());
        (action.attempts, action.blocked)
    };
    let (attempts, waits) = seen(Some(true), &memory);
    assert!(matches!(waits, Some(Blocked::Waits(_))), "{waits:?}");
    assert_eq!(attempts, 2, "have failed");
    assert_eq!(seen(Some(false), &memory), (2, None));
    memory.attempts.end(&change, Some("it failed"));
    let given_up = (3, Some(Blocked::Exhausted));
    assert_eq!(seen(Some(false), &memory), given_up);
    assert_eq!(seen(None, &memory), given_up);
}

#[test]
fn a_failed_installation_says_why_and_waits() {
    let desired = packages("2.9.3-1", &[], Vec::new());
    let change = set_packages(&desired);
    let mut memory = Memory::default().current(&desired);
    memory.attempts.begin(&change, now());
    memory.attempts.end(&change, Some("SetPackages doca-ofed=2.9.3-1: the repository is not signed (`E: The repository 'x' is not signed.`); unsigned repositories are refused: use a signed one"));
    golden_after(
        "installation_failed",
        &Fixture::open_driver(),
        &desired,
        memory,
    );
}

fn described() -> Memory {
    let desired = doca();
    let plan = planned(&Fixture::open_driver(), &desired, Memory::default());
    let mut memory = Memory::default().current(&desired);
    for action in &plan.actions {
        let at = Time("2026-03-01T11:00:00Z".parse().unwrap());
        memory
            .journal
            .changing(&action.change, action.undo.as_ref().unwrap(), "boot-1", at);
    }
    memory
}

#[test]
fn a_repository_that_is_not_asked_for_any_more_is_forgotten() {
    golden_after(
        "repository_forgotten",
        &Fixture::open_driver(),
        &of_driver(Driver::default()),
        described(),
    );
}

#[test]
fn a_package_that_someone_removed_is_not_installed_again() {
    golden_after(
        "removed_by_someone",
        &Fixture::open_driver(),
        &doca(),
        described(),
    );
}

#[test]
fn the_way_back_removes_what_we_installed_and_described() {
    golden_restore("restore", &Fixture::open_driver(), &described());
}

#[test]
fn the_way_back_waits_for_what_was_started() {
    let memory = described();
    let entries = memory.journal.changed.values();
    let set = |change: &&Change| matches!(change, Change::Driver(DriverChange::SetPackages { .. }));
    let undo = entries.map(|entry| &entry.undo).find(set).unwrap().clone();
    let mut node = Fixture::open_driver();
    let mut blocked = |runs| {
        node.state.job = Some(job(&undo, runs));
        let plan = crate::planner::restore(&node.state, &memory, now());
        let action = plan.actions.into_iter().find(|a| a.change == undo).unwrap();
        assert_eq!(action.undo.as_ref(), Some(&undo));
        action.blocked
    };
    assert!(matches!(blocked(true), Some(Blocked::Waits(_))));
    assert_eq!(blocked(false), None);
}
