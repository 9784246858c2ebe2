use super::*;
use kube::core::Status;

fn api(code: u16, message: &str) -> Error {
    let status = Status::failure(message, "Reason").with_code(code).boxed();
    Error::Api {
        operation: "apply",
        object: "GpuRdmaNode n1".into(),
        source: Box::new(kube::Error::Api(status)),
    }
}

#[test]
fn each_status_code_has_its_category() {
    for (code, category) in [
        (403, Category::Forbidden),
        (404, Category::Gone),
        (409, Category::Conflict),
        (422, Category::Invalid),
        (429, Category::Unavailable),
        (500, Category::Unavailable),
    ] {
        assert_eq!(api(code, "m").category(), category, "{code}");
    }
}

#[test]
fn a_failure_inside_the_finalizer_keeps_its_category() {
    let inner = kube::runtime::finalizer::Error::ApplyFailed(api(403, "no"));
    let outer = Error::Finalizer {
        cluster: "c".into(),
        source: Box::new(inner),
    };
    assert_eq!(outer.category(), Category::Forbidden);
}

#[test]
fn the_chain_says_what_was_tried_and_why_it_failed() {
    let chain = api(403, "nodes is forbidden").chain();
    assert!(
        chain.starts_with("cannot apply GpuRdmaNode n1: "),
        "{chain}"
    );
    assert!(chain.contains("nodes is forbidden"), "{chain}");
}

#[test]
fn what_needs_a_person_makes_an_event() {
    assert!(Category::Forbidden.handling().event.is_some());
    assert!(Category::Unavailable.handling().event.is_none());
}
