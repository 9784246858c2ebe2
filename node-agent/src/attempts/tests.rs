use super::*;
use crate::modules::ModuleName;

fn load() -> Change {
    Change::LoadModule(ModuleName::new("ib_umad").unwrap())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn three_failures_use_the_budget_up_with_growing_waits() {
    let mut attempts = Attempts::default();
    assert_eq!(attempts.blocks(&load(), at(0)), None);
    for (begin, free) in [(0, 30), (100, 160)] {
        attempts.begin(&load(), at(begin));
        attempts.end(&load(), Some("exit 1"));
        assert!(matches!(
            attempts.blocks(&load(), at(free - 1)),
            Some(Blocked::Waits(_))
        ));
        assert_eq!(attempts.blocks(&load(), at(free)), None);
    }
    attempts.begin(&load(), at(1000));
    assert_eq!(
        attempts.blocks(&load(), at(99_999)),
        Some(Blocked::Exhausted)
    );
    assert_eq!(attempts.of(&load()), (3, Some("did not end".to_owned())));
}

#[test]
fn a_verified_attempt_gives_its_budget_back() {
    let mut attempts = Attempts::default();
    attempts.begin(&load(), at(0));
    attempts.end(&load(), None);
    assert_eq!(attempts.of(&load()), (0, None));
}

#[test]
fn a_clock_set_back_does_not_hold_an_action() {
    let mut attempts = Attempts::default();
    attempts.begin(&load(), at(1_000_000));
    assert_eq!(attempts.blocks(&load(), at(10)), None);
}

#[test]
fn a_new_hash_or_a_new_annotation_resets_once() {
    let mut attempts = Attempts {
        install_hash: "a".to_owned(),
        ..Attempts::default()
    };
    attempts.begin(&load(), at(0));
    let (same, fresh) = attempts.clone().current("a", None);
    assert_eq!((same, fresh), (attempts.clone(), false));
    let (reset, fresh) = attempts.clone().current("a", Some("1"));
    assert!(fresh && reset.actions.is_empty());
    // The same annotation again, or its removal, resets nothing.
    assert!(!reset.clone().current("a", Some("1")).1);
    assert!(!reset.clone().current("a", None).1);
    assert!(attempts.current("b", None).1);
}

#[test]
fn what_a_reboot_did_not_bring_is_given_up_until_a_reset() {
    let mut attempts = Attempts {
        install_hash: "a".to_owned(),
        ..Attempts::default()
    };
    attempts.begin(&load(), at(1000));
    attempts.prepared(&load(), "boot-1");
    attempts = attempts.booted("boot-1");
    assert_eq!(attempts.blocks(&load(), at(1000)), Some(Blocked::Prepared));
    for boot in ["boot-2", "boot-3"] {
        attempts = attempts.booted(boot);
        let blocked = attempts.blocks(&load(), at(99_999));
        assert_eq!(blocked, Some(Blocked::NoEffect), "{boot}");
    }
    let (made, said) = attempts.of(&load());
    let said = said.unwrap();
    assert_eq!(made, 1, "a boot uses one attempt up");
    assert!(said.contains("has rebooted, and it is not in effect"));
    let (reset, _) = attempts.current("a", Some("again"));
    assert_eq!(reset.blocks(&load(), at(99_999)), None);
}

#[test]
fn what_was_seen_in_effect_may_be_set_again_on_what_is_left_of_the_budget() {
    let mut attempts = Attempts::default();
    for boot in 1..=3 {
        attempts.begin(&load(), at(boot * 1000));
        attempts.prepared(&load(), &format!("boot-{boot}"));
        attempts = attempts.booted(&format!("boot-{}", boot + 1));
        let elsewhere = Change::LoadModule(ModuleName::new("ib").unwrap());
        attempts = attempts.in_effect(&BTreeSet::from([elsewhere]));
        assert!(attempts.had_reboot(&load()), "of another place");
        attempts = attempts.in_effect(&BTreeSet::from([load()]));
        assert!(!attempts.had_reboot(&load()));
    }
    assert_eq!(attempts.of(&load()), (3, None));
    assert_eq!(
        attempts.blocks(&load(), at(99_999)),
        Some(Blocked::Exhausted)
    );
}

#[test]
fn what_is_under_way_is_counted_once() {
    let mut attempts = Attempts::default();
    assert!(attempts.may_be_open(&load()), "after a reset");
    attempts.go_on(&load(), at(1000));
    attempts.go_on(&load(), at(1001));
    assert_eq!(attempts.of(&load()).0, 1);
    assert!(attempts.may_be_open(&load()) && attempts.is_left(&load()));
    attempts.end(&load(), Some("it failed"));
    assert!(!attempts.may_be_open(&load()));
    attempts.begin(&load(), at(2000));
    attempts.begin(&load(), at(2000));
    assert!(attempts.may_be_open(&load()) && !attempts.is_left(&load()));
}
