use super::*;

const GRACE: Duration = Duration::from_secs(3);

#[test]
fn patience_runs_only_while_a_running_kubelet_has_no_stream() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut patience = StreamPatience::new(GRACE);
    assert_eq!(patience.deadline(0, false, at(0)), Some(at(3)));
    assert_eq!(
        patience.deadline(0, false, at(2)),
        Some(at(3)),
        "a second look does not prolong it"
    );
    assert_eq!(patience.deadline(1, false, at(2)), None);
    assert_eq!(
        patience.deadline(0, true, at(9)),
        None,
        "a stopped kubelet is not late"
    );
    assert_eq!(patience.deadline(0, false, at(10)), Some(at(13)));
    assert_eq!(
        (
            patience.is_over(at(12)),
            patience.is_over(at(13)),
            patience.had_one
        ),
        (false, true, true)
    );
}
