use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn draft(status: Option<bool>, message: &str) -> Vec<Draft> {
    let (kind, reason) = (NodeCondition::Ready, NodeReason::Kept);
    vec![Draft {
        kind,
        status,
        reason,
        message: message.to_owned(),
    }]
}

#[test]
fn times_move_on_transition_only() {
    let first = with_times(draft(Some(false), "a"), &[], 1, at(10));
    assert_eq!(first[0].last_transition_time, Time(at(10)));
    let same = with_times(draft(Some(false), "b"), &first, 2, at(20));
    assert_eq!(
        (
            same[0].last_transition_time.clone(),
            same[0].message.as_str()
        ),
        (Time(at(10)), "b")
    );
    let turned = with_times(draft(None, "b"), &same, 2, at(30));
    assert_eq!(
        (
            turned[0].last_transition_time.clone(),
            turned[0].status.as_str()
        ),
        (Time(at(30)), "Unknown")
    );
}
