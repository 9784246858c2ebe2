use super::*;

fn clean() -> Case<'static> {
    Case {
        uuid: None,
        missing: &[],
        injection: Ok(()),
        unreachable: None,
        foreign: None,
        kubelet_answered: true,
        was_admitted: false,
        offer: Offer::Free,
    }
}

#[test]
fn what_changes_hands_is_off_the_list_whatever_was_before() {
    let changing = Case {
        was_admitted: true,
        offer: Offer::ChangesHands,
        ..clean()
    };
    assert!(matches!(admit(&changing), Admission::Waits(_)));
}

#[test]
fn nothing_begins_that_cannot_be_remembered() {
    let unwritable = Case {
        offer: Offer::AsBefore,
        ..clean()
    };
    assert!(matches!(admit(&unwritable), Admission::Waits(_)));
    let before = Case {
        was_admitted: true,
        ..unwritable
    };
    assert!(admit(&before).verdict().0);
}

#[test]
fn nothing_against_it_admits() {
    assert!(admit(&clean()).verdict().0);
}

#[test]
fn unknown_keeps_the_last_answer() {
    let silent = Case {
        kubelet_answered: false,
        ..clean()
    };
    assert!(matches!(admit(&silent), Admission::Waits(_)));
    let before = Case {
        was_admitted: true,
        ..silent
    };
    assert!(admit(&before).verdict().0);
}

#[test]
fn evidence_takes_an_admission_back() {
    let foreign = Foreign {
        resource: "nvidia.com/gpu".to_owned(),
        holder: None,
        shown: true,
    };
    let missing = ["mlx5_3".to_owned()];
    let unreadable = Fact::Unreadable("io".to_owned());
    let refusal = Refusal {
        reason: NodeReason::GpuInjectionUnavailable,
        finding: Some(FindingId::GpuInjectionUnavailable),
        message: "/dev/nvidia0 is absent".to_owned(),
    };
    let before = Case {
        was_admitted: true,
        ..clean()
    };
    for (case, word) in [
        (
            Case {
                missing: &missing,
                ..before.clone()
            },
            "mlx5_3",
        ),
        (
            Case {
                uuid: Some(&Fact::Absent),
                ..before.clone()
            },
            "has no driver",
        ),
        (
            Case {
                uuid: Some(&unreadable),
                missing: &missing,
                ..before.clone()
            },
            "cannot be read, so nothing tells which GPU it is: io",
        ),
        (
            Case {
                foreign: Some(&foreign),
                ..before.clone()
            },
            "nvidia.com/gpu",
        ),
        (
            Case {
                injection: Err(refusal),
                ..before.clone()
            },
            "/dev/nvidia0",
        ),
    ] {
        let (admitted, reason) = admit(&case).verdict();
        assert!(!admitted && reason.contains(word), "{reason}");
    }
}
