use super::*;

fn wanted(holds: bool, message: &str) -> Vec<Wanted> {
    let kind = ClusterCondition::Ready;
    vec![Wanted {
        kind,
        holds,
        reason: ClusterReason::NodesReady,
        message: message.into(),
    }]
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn the_time_moves_only_when_the_status_does() {
    let (first, transitions) = upsert(&[], wanted(false, "a"), Some(1), at(10));
    assert_eq!(transitions.len(), 1);
    let (second, transitions) = upsert(&first, wanted(false, "b"), Some(2), at(20));
    assert!(transitions.is_empty());
    assert_eq!(
        second[0].last_transition_time,
        first[0].last_transition_time
    );
    assert_eq!(
        (second[0].message.as_str(), second[0].observed_generation),
        ("b", Some(2))
    );
    let (third, transitions) = upsert(&second, wanted(true, "b"), Some(2), at(30));
    assert_eq!(third[0].last_transition_time.0, at(30));
    assert!(transitions[0].holds);
}

#[test]
fn conditions_are_sorted_by_type() {
    let mut both = wanted(true, "");
    both.push(Wanted {
        kind: ClusterCondition::Conflict,
        holds: false,
        reason: ClusterReason::NoConflict,
        message: String::new(),
    });
    let (conditions, _) = upsert(&[], both, None, at(0));
    assert_eq!(conditions[0].type_, "Conflict");
}

#[test]
fn a_message_is_cut_at_a_character() {
    assert_eq!(shortened("é".repeat(9), 8), "é".repeat(4));
    assert_eq!(shortened("é".repeat(9), 7), "é".repeat(3));
    assert_eq!(shortened("short".to_owned(), 7), "short");
}

#[test]
fn lists_name_three_and_count_the_rest() {
    assert_eq!(listed(&["a"]), "a");
    assert_eq!(listed(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
}
