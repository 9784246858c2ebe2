//! Random worlds: agents, pods, failures and operators that end after any write. Never more nodes than slots, never a
//! grant while a holder runs, never an action on a node that pods may come to, and always an end.

use proptest::prelude::*;

use super::*;

/// A node as the API server and its agent have it.
#[derive(Clone, Debug)]
struct Sim {
    view: NodeView,
    generation: u64,
    observed: u64,
    /// Costly actions that are left.
    left: u32,
    /// The grant that the agent works on.
    accepted: Option<Maintenance>,
}

impl Sim {
    fn new(index: usize) -> Self {
        let mut view = node(&format!("n{index}"));
        view.version = "v1".into();
        let mut sim = Self {
            view,
            generation: 1,
            observed: 1,
            left: 2,
            accepted: None,
        };
        sim.report();
        sim
    }

    fn report(&mut self) {
        self.observed = self.generation;
        self.view.plan = (self.left > 0).then(|| plan(&format!("p{}", self.left), Cost::Traffic));
        let progress = self.accepted.as_ref().map(|grant| MaintenanceStatus {
            granted_plan: grant.granted_plan.clone(),
            completed: self.left == 0,
            ..MaintenanceStatus::default()
        });
        self.view.progress = progress;
        self.view.phase = if self.left == 0 {
            Phase::Ready
        } else {
            Phase::Waiting
        };
        self.view.fresh = true;
    }

    /// One turn of the agent: takes the grant in, does one action, reports.
    fn agent(&mut self) {
        match &self.view.grant {
            None => self.accepted = None,
            Some(grant) => {
                let same = self.accepted.as_ref() == Some(grant);
                let of_now = grant.granted_plan == format!("p{}", self.left);
                if same || of_now {
                    self.accepted = Some(grant.clone());
                }
            }
        }
        if self.accepted.is_some() && self.left > 0 {
            assert!(self.view.tainted, "{} acts without a taint", self.view.name);
            assert!(
                self.view.holders.is_empty(),
                "{} acts under pods",
                self.view.name
            );
            self.left -= 1;
        }
        self.report();
    }

    fn changed(&mut self) {
        self.generation += 1;
        self.view.fresh = false;
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Taint => self.view.tainted = true,
            Step::Untaint => self.view.tainted = false,
            Step::Grant(grant) => {
                assert!(self.view.holders.is_empty() && self.view.tainted);
                self.view.grant = Some(grant.clone());
                self.changed();
            }
            Step::EndGrant(_) => {
                self.view.grant = None;
                self.changed();
            }
            Step::Evict(_) | Step::Postpone(_) | Step::Fail(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The operator decides and ends after so many writes.
    Operator(usize),
    Agent(usize),
    PodComes(usize),
    PodGoes(usize),
    Cordon(usize),
    Dies(usize),
    Passes(i64),
    Mode(bool),
    Pause(bool),
}

fn event(nodes: usize) -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..6_usize).prop_map(Event::Operator),
        4 => (0..nodes).prop_map(Event::Agent),
        2 => (0..nodes).prop_map(Event::PodComes),
        2 => (0..nodes).prop_map(Event::PodGoes),
        1 => (0..nodes).prop_map(Event::Cordon),
        1 => (0..nodes).prop_map(Event::Dies),
        2 => (1..4000_i64).prop_map(Event::Passes),
        1 => any::<bool>().prop_map(Event::Mode),
        1 => any::<bool>().prop_map(Event::Pause),
    ]
}

struct World {
    policy: Policy,
    nodes: Vec<Sim>,
}

impl World {
    fn operator(&mut self, mut writes: usize) {
        let views: Vec<_> = self.nodes.iter().map(|sim| sim.view.clone()).collect();
        for decision in decide(&self.policy, &views) {
            let named = |sim: &&mut Sim| sim.view.name == decision.node;
            let sim = self.nodes.iter_mut().find(named).unwrap();
            if let Some(record) = decision.record {
                if writes == 0 {
                    return;
                }
                writes -= 1;
                sim.view.record = record;
            }
            for step in &decision.steps {
                if writes == 0 {
                    return;
                }
                writes -= 1;
                sim.take(step);
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Operator(writes) => self.operator(writes),
            Event::Agent(index) if self.nodes[index].view.unavailable.is_none() => {
                self.nodes[index].agent();
            }
            Event::PodComes(index) => {
                let view = &mut self.nodes[index].view;
                if !view.tainted && view.unavailable.is_none() {
                    view.holders = vec!["ml/a".into()];
                }
            }
            Event::PodGoes(index) => self.nodes[index].view.holders.clear(),
            Event::Cordon(index) => self.toggle(index, Unavailable::Cordoned),
            Event::Dies(index) => self.toggle(index, Unavailable::NotReady),
            Event::Passes(seconds) => self.pass(seconds),
            Event::Mode(enforce) => {
                self.policy.mode = if enforce { Mode::Enforce } else { Mode::Plan };
                self.nodes.iter_mut().for_each(Sim::changed);
            }
            Event::Pause(paused) => self.policy.paused = paused,
            Event::Agent(_) => {}
        }
    }

    fn toggle(&mut self, index: usize, why: Unavailable) {
        let view = &mut self.nodes[index].view;
        view.unavailable = match view.unavailable {
            None => Some(why),
            Some(_) => None,
        };
    }

    fn pass(&mut self, seconds: i64) {
        let now = self.policy.now.as_second() + seconds;
        self.policy.now = Timestamp::from_second(now).unwrap();
    }

    fn check(&self) {
        let busy = self.nodes.iter().filter(|sim| sim.view.in_maintenance());
        let busy = busy.count();
        assert!(busy <= self.policy.slots, "{busy} nodes under maintenance");
    }

    /// From here on everything works and pods end: does the rollout?
    fn settle(&mut self) {
        self.policy.mode = Mode::Enforce;
        self.policy.paused = false;
        for sim in &mut self.nodes {
            sim.view.unavailable = None;
        }
        for _ in 0..200 {
            for index in 0..self.nodes.len() {
                self.nodes[index].agent();
                self.nodes[index].view.holders.clear();
            }
            self.operator(usize::MAX);
            self.check();
            self.pass(600);
        }
        for sim in &self.nodes {
            let NodeView { tainted, grant, .. } = &sim.view;
            assert!(!tainted && grant.is_none() && sim.left == 0, "{sim:?}");
            assert_eq!(sim.view.record, Record::default(), "nothing is left behind");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_events_keeps_the_promises(
        slots in 1..3_usize,
        evict in any::<bool>(),
        timeout in prop_oneof![Just(None), Just(Some(SignedDuration::from_mins(5)))],
        events in prop::collection::vec(event(4), 0..120),
    ) {
        let policy = Policy {
            slots,
            workloads: if evict { Workloads::Evict } else { Workloads::Wait },
            wait_timeout: timeout,
            ..ENFORCE
        };
        let mut world = World { policy, nodes: (0..4).map(Sim::new).collect() };
        for event in events {
            world.happen(event);
            world.check();
        }
        world.settle();
    }
}

/// An operator that ends after every single write still gets every node through.
#[test]
fn an_operator_that_ends_after_each_write_gets_there() {
    let policy = Policy {
        slots: 2,
        ..ENFORCE
    };
    let mut world = World {
        policy,
        nodes: (0..4).map(Sim::new).collect(),
    };
    for _ in 0..400 {
        world.operator(1);
        world.check();
        for index in 0..4 {
            world.nodes[index].agent();
        }
    }
    assert!(
        world
            .nodes
            .iter()
            .all(|sim| sim.left == 0 && !sim.view.tainted)
    );
}
