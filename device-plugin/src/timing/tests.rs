use super::*;

#[test]
fn pauses_double_up_to_the_longest_and_start_again() {
    let timing = Timing {
        retry_min: Duration::from_secs(1),
        retry_max: Duration::from_secs(5),
        ..Timing::default()
    };
    let mut backoff = Backoff::new(&timing);
    let pauses: Vec<u64> = (0..5).map(|_| backoff.pause().as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 5, 5]);
    backoff.reset();
    assert_eq!(backoff.pause().as_secs(), 1);
}
