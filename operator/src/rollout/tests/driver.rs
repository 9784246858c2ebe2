//! The driver container in maintenance.

use super::*;

#[test]
fn the_driver_comes_before_the_plan() {
    let ready = |driver| NodeView {
        tainted: true,
        driver,
        ..wanting("n1")
    };
    assert_eq!(
        only(ENFORCE, ready(Driver::Missing)).0,
        [Step::DriverLabel { wanted: true }]
    );
    assert_eq!(
        only(ENFORCE, ready(Driver::Unwanted)).0,
        [Step::DriverLabel { wanted: false }]
    );
    let replace = Step::ReplaceDriverPod {
        namespace: "gpu-rdma".into(),
        name: "driver-x".into(),
    };
    assert_eq!(only(ENFORCE, ready(outdated())).0, [replace]);
    assert_eq!(
        only(ENFORCE, ready(Driver::Starting)),
        (
            vec![],
            State::Running("the driver pod starts or ends".into())
        )
    );
    assert!(matches!(
        only(ENFORCE, ready(Driver::Current)).0[..],
        [Step::Grant(_)]
    ));
}

#[test]
fn a_forgotten_driver_pod_goes_after_taint_and_wait() {
    let (namespace, name) = ("gpu-rdma".to_owned(), "driver-x".to_owned());
    let mut view = NodeView {
        driver: Driver::Leftover {
            namespace: namespace.clone(),
            name: name.clone(),
        },
        holders: vec!["ml/train-0".into()],
        ..node("n1")
    };
    assert_eq!(only(ENFORCE, view.clone()).0, [Step::Taint]);
    view.tainted = true;
    assert_eq!(only(ENFORCE, view.clone()).0, []);
    view.holders.clear();
    assert_eq!(
        only(ENFORCE, view).0,
        [Step::DeleteDriverPod { namespace, name }]
    );
}

#[test]
fn a_driver_pod_is_never_replaced_under_running_pods() {
    for driver in [Driver::Missing, outdated(), Driver::Unwanted] {
        let view = NodeView {
            driver,
            holders: vec!["ml/a".into()],
            ..node("n1")
        };
        assert_eq!(only(ENFORCE, view.clone()).0, [Step::Taint]);
        let view = NodeView {
            tainted: true,
            ..view
        };
        assert_eq!(
            only(ENFORCE, view),
            (vec![], State::WaitingForPods(vec!["ml/a".into()]))
        );
    }
}
