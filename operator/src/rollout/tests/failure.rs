//! Maintenance that fails, and what makes it go on.

use crds::node::ActionStatus;

use super::*;

fn decided(nodes: &[NodeView]) -> Vec<Decision> {
    decide(&ENFORCE, nodes)
}

fn exhausted() -> PlanStatus {
    let action = ActionStatus {
        kind: "UnloadModule".into(),
        target: "mlx5_ib".into(),
        cost: Cost::Traffic,
        attempts: 3,
        exhausted: true,
        message: "it is in use".into(),
        ..ActionStatus::default()
    };
    PlanStatus {
        actions: vec![action],
        ..plan("p1", Cost::Traffic)
    }
}

/// A granted node with a plan of which something is given up.
fn given_up(plan: PlanStatus) -> NodeView {
    NodeView {
        plan: Some(plan),
        progress: Some(progress(false)),
        version: "v1".into(),
        ..granted_node("n1")
    }
}

/// A node whose grant has ended and that waits to be verified.
fn maintained(phase: Phase, reason: &str) -> NodeView {
    let mut view = node("n1");
    view.tainted = true;
    view.phase = phase;
    view.ready.reason = reason.into();
    view.ready.message = "GPU0 has lost its NIC".into();
    view.version = "v1".into();
    view.record.acted = Some(ENFORCE.now);
    view
}

#[test]
fn attempts_that_are_used_up_end_the_grant_and_halt_the_cluster() {
    let mut failing = given_up(exhausted());
    let decision = decided(&[failing.clone()]).remove(0);
    assert!(
        matches!(&decision.steps[..], [Step::EndGrant(End::Failed), Step::Fail(why)]
            if why == "UnloadModule mlx5_ib failed 3 times: it is in use"),
        "{:?}",
        decision.steps
    );
    failing.grant = None;
    failing.record = decision.record.unwrap();
    let draining = NodeView {
        tainted: true,
        ..wanting("n2")
    };
    for fresh in [false, true] {
        failing.fresh = fresh;
        let policy = Policy {
            slots: 3,
            ..ENFORCE
        };
        let nodes = [failing.clone(), draining.clone(), wanting("n3")];
        let decisions = decide(&policy, &nodes);
        assert!(decisions[0].steps.is_empty(), "said once, the taint stays");
        assert_eq!(decisions[1].steps, [Step::Untaint]);
        assert!(
            matches!(&decisions[2].state, State::Halted(why) if why.starts_with("n1: ")),
            "{:?}",
            decisions[2]
        );
    }
    // The agent has obeyed the annotation: its counts start anew.
    failing.plan = Some(plan("p1", Cost::Traffic));
    failing.version = "v2".into();
    let decision = decided(&[failing]).remove(0);
    assert!(matches!(&decision.steps[..], [Step::Grant(_)]));
    assert_eq!(decision.record.unwrap().failed, None);
}

/// O54: firmware that the reboot did not change. The agent has given it up after one attempt.
#[test]
fn a_reboot_without_its_effect_ends_the_grant_as_failed_and_halts_the_cluster() {
    let action = ActionStatus {
        kind: "SetLinkType".into(),
        target: "0000:14:00.0 port 1".into(),
        cost: Cost::Reboot,
        attempts: 1,
        exhausted: true,
        message: "gave up after the reboot".into(),
        ..ActionStatus::default()
    };
    let mut failing = given_up(PlanStatus {
        actions: vec![action],
        ..plan("p1", Cost::Reboot)
    });
    let decision = decided(&[failing.clone()]).remove(0);
    assert!(
        matches!(&decision.steps[..], [Step::EndGrant(End::Failed), Step::Fail(why)]
            if why == "SetLinkType 0000:14:00.0 port 1 failed once: gave up after the reboot"),
        "{:?}",
        decision.steps
    );
    // The agent has forgotten the grant; its plan still says so.
    failing.grant = None;
    failing.progress = None;
    failing.record = decision.record.unwrap();
    let decisions = decided(&[failing, wanting("n2")]);
    assert!(decisions[0].steps.is_empty(), "no second grant");
    assert!(matches!(decisions[1].state, State::Halted(_)));
}

#[test]
fn grants_that_run_go_on_while_another_node_has_failed() {
    let failing = NodeView {
        plan: Some(exhausted()),
        ..node("n1")
    };
    let decisions = decided(&[failing, granted_node("n2")]);
    assert_eq!(decisions[1].state, running());
    assert_eq!(decisions[1].steps, []);
}

#[test]
fn a_node_that_is_worse_afterwards_keeps_its_taint_until_a_person_has_looked() {
    let mut view = maintained(Phase::Degraded, "PairsRefused");
    let decision = decided(&[view.clone()]).remove(0);
    assert!(
        matches!(&decision.steps[..], [Step::Fail(why)] if why.contains("PairsRefused: GPU0 has lost its NIC"))
    );
    view.record = decision.record.unwrap();
    let halted = decided(&[view.clone(), wanting("n2")]);
    assert!(halted[0].is_empty() && matches!(halted[1].state, State::Halted(_)));
    view.version = "v2".into();
    assert_eq!(decided(&[view.clone()])[0].steps, [Step::Untaint]);
    view.version = "v1".into();
    view.phase = Phase::Ready;
    assert_eq!(decided(&[view])[0].steps, [Step::Untaint], "it healed");
}

#[test]
fn what_was_broken_before_is_no_failure_of_the_maintenance() {
    let mut view = maintained(Phase::Degraded, "LinkDown");
    view.record.before = Some("LinkDown".into());
    assert_eq!(decided(&[view])[0].steps, [Step::Untaint]);
    let begun = NodeView {
        phase: Phase::Degraded,
        ready: Ready {
            reason: "LinkDown".into(),
            message: String::new(),
        },
        ..wanting("n1")
    };
    let record = decided(&[begun])[0].record.clone().unwrap();
    assert_eq!(record.before.as_deref(), Some("LinkDown"));
}

#[test]
fn free_actions_that_fail_halt_nobody() {
    let mut free = exhausted();
    free.cost = Cost::None;
    free.actions[0].cost = Cost::None;
    let failing = NodeView {
        plan: Some(free),
        ..node("n1")
    };
    assert_eq!(decided(&[failing, wanting("n2")])[1].steps, [Step::Taint]);
}
