//! Pods that are waited for, evicted, or given up on.

use super::*;

const EVICT: Policy = Policy {
    workloads: Workloads::Evict,
    ..ENFORCE
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn later(policy: Policy, seconds: i64) -> Policy {
    Policy {
        now: at(seconds),
        ..policy
    }
}

/// A tainted node that waits since the beginning.
fn draining(holders: Vec<Holder>) -> NodeView {
    let record = Record {
        since: Some(ENFORCE.now),
        ..Record::default()
    };
    NodeView {
        tainted: true,
        holders,
        record,
        ..wanting("n1")
    }
}

fn decided(policy: Policy, view: &NodeView) -> Decision {
    decide(&policy, std::slice::from_ref(view)).remove(0)
}

/// The node as it is once a decision was carried out.
fn after(mut view: NodeView, decision: &Decision) -> NodeView {
    view.record = decision.record.clone().unwrap_or(view.record);
    for step in &decision.steps {
        match step {
            Step::Taint => view.tainted = true,
            Step::Untaint => view.tainted = false,
            _ => {}
        }
    }
    view
}

fn pods(names: &[&str]) -> Vec<(String, String)> {
    names
        .iter()
        .map(|name| ("ml".to_owned(), (*name).to_owned()))
        .collect()
}

#[test]
fn evictions_come_in_rounds_with_a_growing_pause_and_an_end() {
    let mut view = draining(vec!["ml/a".into(), "ml/b".into()]);
    let mut seconds = 0;
    for pause in [15, 30, 60, 120, 240, 300] {
        let decision = decided(later(EVICT, seconds), &view);
        assert_eq!(decision.steps, [Step::Evict(pods(&["a", "b"]))]);
        assert_eq!(decision.wake, Some(at(seconds + pause)));
        view = after(view, &decision);
        let early = decided(later(EVICT, seconds + pause - 1), &view);
        assert!(early.is_empty(), "{early:?}");
        seconds += pause;
    }
    view.record = view.record.with_refusals(vec!["ml/a: budget web".into()]);
    let decision = decided(later(EVICT, seconds), &view);
    assert!(matches!(
        &decision.steps[..],
        [Step::Untaint, Step::Postpone(why)]
            if why.contains("6 rounds") && why.contains("ml/a, ml/b") && why.contains("budget web")
    ));
}

#[test]
fn what_must_stay_is_named_and_never_evicted() {
    let holder = |name: &str, stays| Holder {
        stays,
        ..format!("ml/{name}").as_str().into()
    };
    let view = draining(vec![
        holder("a", None),
        holder("b", Some(Stays::DaemonSet)),
        holder("c", Some(Stays::Mirror)),
        holder("d", Some(Stays::DoNotDisrupt)),
        holder("e", Some(Stays::Ending)),
    ]);
    let decision = decided(EVICT, &view);
    assert_eq!(decision.steps, [Step::Evict(pods(&["a"]))]);
    let State::Evicting { pods, .. } = decision.state else {
        panic!("{:?}", decision.state)
    };
    for (text, part) in pods[1..].iter().zip([
        "DaemonSet",
        "static pod",
        "gpurdma.dev/do-not-disrupt",
        "ending",
    ]) {
        assert!(text.contains(part), "{text}");
    }
    let view = draining(view.holders[1..].to_vec());
    let decision = decided(EVICT, &view);
    assert!(decision.steps.is_empty() && matches!(decision.state, State::WaitingForPods(_)));
}

#[test]
fn wait_evicts_nobody() {
    assert_eq!(decided(ENFORCE, &draining(vec!["ml/a".into()])).steps, []);
}

#[test]
fn a_wait_that_is_over_gives_the_slot_back_and_comes_again_later() {
    let policy = Policy {
        wait_timeout: Some(SignedDuration::from_mins(30)),
        ..ENFORCE
    };
    let mut view = draining(vec!["ml/a".into()]);
    let early = decided(later(policy, 1799), &view);
    assert!(early.is_empty() && early.wake == Some(at(1800)));
    let decision = decided(later(policy, 1800), &view);
    assert!(
        matches!(&decision.state, State::Postponed { until, why } if *until == at(2400) && why.contains("ml/a"))
    );
    // The operator may end after the record is written: the taint goes all the same.
    view.record = decision.record.clone().unwrap();
    assert_eq!(decided(later(policy, 1801), &view).steps, [Step::Untaint]);
    view = after(view, &decision);
    let meanwhile = decide(&later(policy, 1801), &[view.clone(), wanting("n2")]);
    assert_eq!(meanwhile[0].steps, []);
    assert_eq!(
        meanwhile[1].steps,
        [Step::Taint],
        "another node has the slot"
    );
    assert_eq!(decided(later(policy, 2400), &view).steps, [Step::Taint]);
    let evicts = Policy {
        workloads: Workloads::Evict,
        ..later(policy, 1801)
    };
    assert_eq!(
        decided(evicts, &view).steps,
        [Step::Taint],
        "another policy is tried at once"
    );
    view.holders.clear();
    view.record.given_back = 9;
    let again = decided(later(policy, 2400), &view).record.unwrap();
    assert_eq!((again.since, again.given_back), (Some(at(2400)), 9));
}

#[test]
fn a_taint_without_memory_waits_from_now() {
    let view = NodeView {
        record: Record::default(),
        ..draining(vec!["ml/a".into()])
    };
    let decision = decided(later(ENFORCE, 7), &view);
    assert_eq!(decision.record.unwrap().since, Some(at(7)));
}

#[test]
fn a_kernel_user_is_shown_and_ends_the_wait_like_a_pod() {
    let policy = Policy {
        wait_timeout: Some(SignedDuration::from_mins(1)),
        ..ENFORCE
    };
    let blocked = MaintenanceStatus {
        message: "waits for lustre (ko2iblnd)".into(),
        ..progress(false)
    };
    let mut view = NodeView {
        progress: Some(blocked),
        ..granted_node("n1")
    };
    view.record.since = Some(at(0));
    let decision = decided(later(policy, 59), &view);
    assert_eq!(
        decision.state,
        State::Running("waits for lustre (ko2iblnd)".into())
    );
    let over = decided(later(policy, 60), &view);
    assert_eq!(over.steps, [Step::EndGrant(End::TimedOut)]);
    assert!(over.record.clone().unwrap().why.contains("lustre"));
    view = after(view, &over);
    view.grant = None;
    view.fresh = false;
    assert_eq!(decided(later(policy, 61), &view).steps, []);
    view.fresh = true;
    assert_eq!(decided(later(policy, 62), &view).steps, [Step::Untaint]);
    let mut begun = granted_node("n1");
    begun.record.since = Some(at(0));
    let started_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(1)));
    begun.progress = Some(MaintenanceStatus {
        started_at,
        ..progress(false)
    });
    assert_eq!(
        decided(later(policy, 600), &begun).steps,
        [],
        "what has begun is not cut off"
    );
}

#[test]
fn nodes_that_are_out_of_service_take_slots_and_are_named() {
    let out = |name: &str, why| NodeView {
        unavailable: Some(why),
        ..node(name)
    };
    let nodes = [
        out("n1", Unavailable::Cordoned),
        out("n2", Unavailable::NotReady),
        wanting("n3"),
    ];
    let policy = Policy {
        slots: 2,
        ..ENFORCE
    };
    let expected = State::Queued {
        slots: 2,
        taken: vec!["n1 (cordoned)".into(), "n2 (not Ready)".into()],
    };
    assert_eq!(decide(&policy, &nodes)[2].state, expected);
    let more = Policy {
        slots: 3,
        ..ENFORCE
    };
    assert_eq!(decide(&more, &nodes)[2].steps, [Step::Taint]);
}

#[test]
fn a_cordoned_node_needs_no_further_slot_and_one_that_is_not_ready_waits() {
    let cordoned = |name: &str| NodeView {
        unavailable: Some(Unavailable::Cordoned),
        ..wanting(name)
    };
    let decisions = decide(&ENFORCE, &[cordoned("n1"), cordoned("n2"), wanting("n3")]);
    let tainted: Vec<_> = decisions
        .iter()
        .filter(|one| one.steps == [Step::Taint])
        .map(|one| one.node.as_str())
        .collect();
    assert_eq!(tainted, ["n1"], "one at a time");
    let dead = NodeView {
        unavailable: Some(Unavailable::NotReady),
        ..wanting("n1")
    };
    assert_eq!(decided(ENFORCE, &dead).state, State::NotReady);
}
