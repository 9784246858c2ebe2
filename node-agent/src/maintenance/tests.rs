use super::*;
use crate::action::{BUDGET, Blocked, Change};
use crate::modules::ModuleName;

fn action(name: &str, blocked: Option<Blocked>) -> Action {
    Action {
        change: Change::UnloadModule(ModuleName::new(name).unwrap()),
        undo: None,
        precondition: String::new(),
        attempts: 1,
        budget: BUDGET,
        blocked,
        last_error: None,
    }
}

fn plan(actions: Vec<Action>) -> Plan {
    Plan {
        actions,
        ..Plan::default()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A node that is asked for something else by each hash, with a grant for the plan.
fn asks(plan: &Plan) -> Desired {
    let install_hash = "a".repeat(64);
    let hash = plan.status(&install_hash).unwrap().unwrap().hash;
    Desired {
        mode: Mode::Enforce,
        grant: Some(Maintenance {
            granted_plan: hash,
            install_hash: install_hash.clone(),
            attempt: 1,
        }),
        install_hash,
        ..Desired::default()
    }
}

#[test]
fn a_grant_is_taken_in_for_its_plan_only_and_kept_while_the_plan_shrinks() {
    let whole = plan(vec![action("a", None), action("b", None)]);
    let desired = asks(&whole);
    let taken = accepted(None, &desired, &whole).unwrap();
    assert_eq!(taken.actions.len(), 2);
    let less = plan(vec![action("b", None)]);
    assert_eq!(accepted(None, &desired, &less), None);
    assert_eq!(accepted(Some(&taken), &desired, &less), Some(taken.clone()));
    assert_eq!(
        accepted(Some(&taken), &desired, &plan(vec![])),
        Some(taken.clone())
    );
    let mut again = desired.clone();
    again.grant.as_mut().unwrap().attempt = 2;
    assert_eq!(accepted(Some(&taken), &again, &less), None, "another grant");
    for other in [
        Desired {
            mode: Mode::Plan,
            ..desired.clone()
        },
        Desired {
            install_hash: "b".repeat(64),
            ..desired.clone()
        },
        Desired {
            grant: None,
            ..desired
        },
    ] {
        assert_eq!(accepted(Some(&taken), &other, &whole), None);
    }
}

/// The named module's attempt, prepared in the first boot.
fn prepared(name: &str) -> Attempts {
    let change = action(name, None).change;
    let mut attempts = Attempts::default();
    attempts.begin(&change, at(0));
    attempts.prepared(&change, "boot-1");
    attempts
}

#[test]
fn the_reboot_comes_when_only_prepared_actions_are_left() {
    let whole = plan(vec![action("a", None), action("b", None)]);
    let mut taken = accepted(None, &asks(&whole), &whole).unwrap();
    let left = |blocked: [Option<Blocked>; 2]| {
        let [a, b] = blocked;
        plan(vec![action("a", a), action("b", b)])
    };
    let ready = || Some(Blocked::Prepared);
    for (blocked, next) in [
        ([ready(), None], Next::Actions),
        ([ready(), Some(Blocked::Exhausted)], Next::Actions),
        ([ready(), Some(Blocked::NoEffect)], Next::Actions),
        ([ready(), ready()], Next::Reboot),
    ] {
        assert_eq!(
            taken.next(&left(blocked), &prepared("a"), "boot-1", at(0)),
            next
        );
    }
    let none = Attempts::default();
    assert_eq!(
        taken.next(&plan(vec![]), &none, "boot-1", at(0)),
        Next::Actions
    );
    assert_eq!(
        taken.next(&plan(vec![]), &prepared("a"), "boot-1", at(0)),
        Next::Reboot,
        "what is written is out of the plan and not in effect"
    );
    let foreign = taken.next(&plan(vec![]), &prepared("z"), "boot-1", at(0));
    assert_eq!(foreign, Next::Actions, "by hand, without a grant");
    let others = plan(vec![action("c", None), action("a", ready())]);
    assert_eq!(
        taken.next(&others, &prepared("a"), "boot-1", at(0)),
        Next::Reboot,
        "what is not granted is not waited for"
    );
    taken.reboot = Some(Reboot {
        boot_id: "boot-1".into(),
        at: Time(at(0)),
    });
    let both = left([ready(), ready()]);
    assert_eq!(
        taken.next(&both, &prepared("a"), "boot-1", at(599)),
        Next::GoesDown
    );
    assert_eq!(
        taken.next(&both, &prepared("a"), "boot-1", at(600)),
        Next::DidNotGoDown
    );
    assert_eq!(
        taken.next(&both, &prepared("a"), "boot-2", at(600)),
        Next::Reboot
    );
}

#[test]
fn the_status_says_what_is_waited_for() {
    let whole = plan(vec![action(
        "a",
        Some(Blocked::Waits("x is Loading".into())),
    )]);
    let taken = accepted(None, &asks(&whole), &whole).unwrap();
    let status = taken.status(&whole, &Attempts::default(), &[]);
    assert_eq!(
        (status.completed, status.message.as_str()),
        (false, "UnloadModule a: waits: x is Loading")
    );
    let status = taken.status(
        &whole,
        &Attempts::default(),
        &["kernel user ko2iblnd (Lustre): unmount".into()],
    );
    assert!(status.message.contains("Lustre"), "{}", status.message);
    assert!(
        taken
            .status(&plan(vec![action("z", None)]), &Attempts::default(), &[])
            .completed
    );
    let waits = taken.status(&plan(vec![]), &prepared("a"), &[]);
    assert!(
        !waits.completed && waits.message.contains("reboots"),
        "{waits:?}"
    );
}

#[test]
fn a_reboot_without_its_effect_does_not_complete_the_grant() {
    let whole = plan(vec![action("a", None)]);
    let taken = accepted(None, &asks(&whole), &whole).unwrap();
    let attempts = prepared("a").booted("boot-2");
    let blocked = attempts.blocks(&whole.actions[0].change, at(0));
    assert_eq!(blocked, Some(Blocked::NoEffect));
    let left = plan(vec![action("a", blocked)]);
    let status = taken.status(&left, &attempts, &[]);
    assert!(!status.completed, "{status:?}");
    assert!(status.message.contains("gave up after the reboot"));
    assert!(left.actions[0].status().exhausted, "the operator halts");
    let next = taken.next(&left, &attempts, "boot-2", at(0));
    assert_eq!(next, Next::Actions, "no second reboot");
    let done = taken.status(&plan(vec![]), &attempts, &[]);
    assert!(done.completed, "{done:?}");
}
