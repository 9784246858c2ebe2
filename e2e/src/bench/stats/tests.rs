use super::*;

fn samples(times: impl IntoIterator<Item = u64>) -> Samples {
    times.into_iter().map(Duration::from_millis).collect()
}

#[test]
fn percentiles_are_samples_by_the_nearest_rank() {
    let summary = samples((1..=200).rev()).summary().unwrap();
    assert_eq!(
        (summary.count, summary.p50, summary.p99, summary.max),
        (200, 100.0, 198.0, 200.0)
    );
    let summary = samples([3, 1, 2]).summary().unwrap();
    assert_eq!((summary.p50, summary.p99, summary.max), (2.0, 3.0, 3.0));
    let summary = samples([7]).summary().unwrap();
    assert_eq!((summary.p50, summary.p99, summary.max), (7.0, 7.0, 7.0));
}

#[test]
fn nothing_measured_is_no_figure() {
    assert_eq!(Samples::default().summary(), None);
}
