use super::*;

#[test]
fn delays_double_up_to_a_bound() {
    let first = Duration::from_secs(2);
    assert_eq!(delay(first, 0), Duration::from_secs(2));
    assert_eq!(delay(first, 3), Duration::from_secs(16));
    assert_eq!(delay(first, 400), LONGEST);
}

#[test]
fn objects_have_their_own_count_and_success_forgets() {
    let backoff = Backoff::default();
    let second = Duration::from_secs(1);
    backoff.failed("a", second);
    assert_eq!(backoff.failed("a", second), Duration::from_secs(2));
    assert_eq!(backoff.failed("b", second), second);
    backoff.succeeded("a");
    assert_eq!(backoff.failed("a", second), second);
}
