use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::node::grant_for;
use super::*;

pub(super) const ENFORCE: Policy = Policy {
    mode: Mode::Enforce,
    paused: false,
    slots: 1,
    workloads: Workloads::Wait,
    wait_timeout: None,
    now: Timestamp::UNIX_EPOCH,
};

mod drain;
mod driver;
mod failure;
mod walk;

impl From<&str> for Holder {
    fn from(id: &str) -> Self {
        let (namespace, name) = id.split_once('/').unwrap();
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            stays: None,
        }
    }
}

fn queued(taken: &str) -> State {
    State::Queued {
        slots: 1,
        taken: vec![taken.to_owned()],
    }
}

fn running() -> State {
    State::Running(String::new())
}

fn plan(hash: &str, cost: Cost) -> PlanStatus {
    PlanStatus {
        hash: hash.into(),
        install_hash: "h1".into(),
        cost,
        actions: Vec::new(),
    }
}

fn node(name: &str) -> NodeView {
    NodeView {
        name: name.into(),
        install_hash: "h1".into(),
        fresh: true,
        phase: Phase::Ready,
        ..NodeView::default()
    }
}

fn wanting(name: &str) -> NodeView {
    NodeView {
        plan: Some(plan("p1", Cost::Traffic)),
        ..node(name)
    }
}

fn granted_node(name: &str) -> NodeView {
    let grant = Maintenance {
        granted_plan: "p1".into(),
        install_hash: "h1".into(),
        attempt: 1,
    };
    NodeView {
        grant: Some(grant),
        tainted: true,
        ..wanting(name)
    }
}

fn progress(completed: bool) -> MaintenanceStatus {
    MaintenanceStatus {
        granted_plan: "p1".into(),
        completed,
        ..MaintenanceStatus::default()
    }
}

fn only(policy: Policy, node: NodeView) -> (Vec<Step>, State) {
    let mut decisions = decide(&policy, &[node]);
    assert_eq!(decisions.len(), 1);
    let decision = decisions.remove(0);
    (decision.steps, decision.state)
}

fn outdated() -> Driver {
    Driver::Outdated {
        namespace: "gpu-rdma".into(),
        name: "driver-x".into(),
    }
}

#[test]
fn a_node_goes_through_taint_wait_grant_and_back() {
    let pods = vec!["ml/train-0".to_owned()];
    let holders: Vec<Holder> = vec!["ml/train-0".into()];
    let mut view = NodeView {
        holders,
        ..wanting("n1")
    };
    assert_eq!(
        only(ENFORCE, view.clone()),
        (vec![Step::Taint], State::WaitingForPods(pods.clone()))
    );
    view.tainted = true;
    assert_eq!(
        only(ENFORCE, view.clone()),
        (vec![], State::WaitingForPods(pods))
    );
    view.holders.clear();
    let (steps, state) = only(ENFORCE, view.clone());
    let grant = Maintenance {
        granted_plan: "p1".into(),
        install_hash: "h1".into(),
        attempt: 1,
    };
    assert_eq!(
        (steps, state),
        (vec![Step::Grant(grant.clone())], running())
    );
    view.grant = Some(grant);
    view.fresh = false;
    assert_eq!(only(ENFORCE, view.clone()), (vec![], running()));
    view.progress = Some(progress(true));
    assert_eq!(
        only(ENFORCE, view.clone()).0,
        [Step::EndGrant(End::Completed)]
    );
    view.grant = None;
    let (steps, state) = only(ENFORCE, view.clone());
    assert!(
        steps.is_empty() && matches!(state, State::WaitingForAgent(_)),
        "the old plan is no ground for a new grant"
    );
    view.fresh = true;
    view.plan = None;
    view.record.acted = Some(ENFORCE.now);
    view.phase = Phase::Waiting;
    view.ready.message = "the plugin has not registered".into();
    let (steps, state) = only(ENFORCE, view.clone());
    assert!(steps.is_empty(), "not before it is verified");
    let expected = "the node is not Ready yet: the plugin has not registered";
    assert_eq!(state, State::WaitingForAgent(expected.into()));
    view.phase = Phase::Ready;
    assert_eq!(only(ENFORCE, view), (vec![Step::Untaint], State::Idle));
}

#[test]
fn nothing_costly_means_no_maintenance() {
    for view in [
        node("n1"),
        NodeView {
            plan: Some(plan("p1", Cost::None)),
            ..node("n1")
        },
        NodeView {
            fresh: false,
            ..wanting("n1")
        },
        NodeView {
            install_hash: "h2".into(),
            ..wanting("n1")
        },
        NodeView {
            driver: Driver::Current,
            ..node("n1")
        },
        NodeView {
            driver: Driver::Starting,
            ..node("n1")
        },
    ] {
        assert_eq!(
            only(ENFORCE, view.clone()),
            (vec![], State::Idle),
            "{view:?}"
        );
    }
}

#[test]
fn one_node_at_a_time_and_idle_nodes_first() {
    let busy = NodeView {
        holders: vec!["ml/a".into()],
        ..wanting("n1")
    };
    let decisions = decide(&ENFORCE, &[busy, wanting("n2"), wanting("n3")]);
    let summary: Vec<_> = decisions
        .iter()
        .map(|one| (one.node.as_str(), one.steps.len(), &one.state))
        .collect();
    assert_eq!(
        summary,
        [
            ("n1", 0, &queued("n2 (maintenance)")),
            ("n2", 1, &State::WaitingForPods(vec![])),
            ("n3", 0, &queued("n2 (maintenance)"))
        ]
    );
}

#[test]
fn a_node_under_maintenance_has_the_slot_even_after_a_restart() {
    let decisions = decide(&ENFORCE, &[granted_node("n9"), wanting("n1")]);
    assert_eq!(decisions[0].state, queued("n9 (maintenance)"));
    let tainted = NodeView {
        tainted: true,
        holders: vec!["ml/a".into()],
        ..wanting("n9")
    };
    assert_eq!(
        decide(&ENFORCE, &[tainted, wanting("n1")])[0].state,
        queued("n9 (maintenance)")
    );
}

#[test]
fn two_slots_take_two_nodes() {
    let policy = Policy {
        slots: 2,
        ..ENFORCE
    };
    let decisions = decide(&policy, &[wanting("n1"), wanting("n2"), wanting("n3")]);
    assert_eq!(
        decisions
            .iter()
            .filter(|one| one.steps == [Step::Taint])
            .count(),
        2
    );
}

#[test]
fn grants_end_for_their_reasons_only() {
    let table = [
        (granted_node("n1"), None),
        (
            NodeView {
                progress: Some(progress(true)),
                ..granted_node("n1")
            },
            Some(End::Completed),
        ),
        (
            NodeView {
                install_hash: "h2".into(),
                ..granted_node("n1")
            },
            Some(End::HashChanged),
        ),
        (
            NodeView {
                plan: Some(plan("p2", Cost::Traffic)),
                ..granted_node("n1")
            },
            Some(End::PlanChanged),
        ),
        (
            NodeView {
                plan: None,
                ..granted_node("n1")
            },
            Some(End::PlanChanged),
        ),
        // Begun: the plan shrinks while it runs.
        (
            NodeView {
                plan: Some(plan("p2", Cost::Traffic)),
                progress: Some(progress(false)),
                ..granted_node("n1")
            },
            None,
        ),
        // Stale: what the agent said before it saw the grant.
        (
            NodeView {
                plan: Some(plan("p2", Cost::Traffic)),
                fresh: false,
                ..granted_node("n1")
            },
            None,
        ),
    ];
    for (view, end) in table {
        let expected: Vec<_> = end.map(Step::EndGrant).into_iter().collect();
        assert_eq!(only(ENFORCE, view.clone()).0, expected, "{view:?}");
    }
}

#[test]
fn a_taint_that_someone_took_away_comes_back() {
    let view = NodeView {
        tainted: false,
        ..granted_node("n1")
    };
    assert_eq!(only(ENFORCE, view), (vec![Step::Taint], running()));
}

#[test]
fn paused_starts_nothing_and_lets_running_work_end() {
    let paused = Policy {
        paused: true,
        ..ENFORCE
    };
    assert_eq!(only(paused, wanting("n1")), (vec![], State::Idle));
    assert_eq!(
        only(
            paused,
            NodeView {
                tainted: true,
                ..wanting("n1")
            }
        ),
        (vec![Step::Untaint], State::Idle)
    );
    assert_eq!(only(paused, granted_node("n1")), (vec![], running()));
}

#[test]
fn leaving_enforce_takes_everything_back() {
    for mode in [Mode::Observe, Mode::Plan] {
        let left = Policy { mode, ..ENFORCE };
        let mut view = granted_node("n1");
        assert_eq!(
            only(left, view.clone()).0,
            [Step::EndGrant(End::NotEnforced)]
        );
        view.grant = None;
        view.record.acted = Some(ENFORCE.now);
        view.fresh = false;
        assert_eq!(only(left, view.clone()).0, [], "an action may still run");
        view.fresh = true;
        assert_eq!(only(left, view.clone()).0, [Step::Untaint]);
        view.record.acted = None;
        view.fresh = false;
        assert_eq!(only(left, view).0, [Step::Untaint], "nothing was begun");
        assert_eq!(only(Policy { mode, ..ENFORCE }, wanting("n1")).0, []);
    }
}

#[test]
fn slots_are_a_number_or_a_percentage_and_at_least_one() {
    let text = |value: &str| IntOrString::String(value.to_owned());
    for (value, expected) in [
        (IntOrString::Int(3), Some(3)),
        (IntOrString::Int(0), Some(1)),
        (IntOrString::Int(-2), Some(1)),
        (text("25%"), Some(2)),
        (text("1%"), Some(1)),
        (text("100%"), Some(10)),
        (text("101%"), None),
        (text("ten"), None),
    ] {
        assert_eq!(slots(&value, 10), expected, "{value:?}");
    }
}

#[test]
fn the_attempt_counts_on_from_the_agents() {
    let action = crds::node::ActionStatus {
        cost: Cost::Traffic,
        attempts: 2,
        ..Default::default()
    };
    let plan = PlanStatus {
        actions: vec![action],
        ..plan("p1", Cost::Traffic)
    };
    assert_eq!(grant_for(&plan).attempt, 3);
}
