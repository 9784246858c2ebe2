//! A node's life: random faults, settings, restarts and allocations. One GPU, or one NIC that is not declared shared, is
//! never in two live containers.
//!
//! Only one of the agent's two files is lost at a time; the loss of both is `node-agent`'s own test.
//!
//! Not stand-ins: partition and merge, the node file's text, the keeper with all that it believes, preference and
//! allocation. Models: the agent's bookkeeping (as `node-agent` does it in `handover` and `previous`) and the kubelet,
//! which knows a resource by its name only and takes any free and healthy device of its last list.
//!
//! `PROPTEST_CASES` sets the budget: a quarter of it is run here.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use topology::machine::Machine;

mod agent;
mod kubelet;
mod machine;

use agent::{Agent, Setting, setting};
use kubelet::Kubelet;
use machine::{Hardware, hardware};

use super::Bench;
use crate::link::Seen;

const MAX: usize = 6;

/// What happens to the node.
#[derive(Clone, Debug)]
enum Event {
    /// A GPU goes or comes back.
    Gpu(usize),
    /// A NIC goes or comes back.
    Nic(usize),
    /// The driver of a GPU is unloaded or loaded.
    Driver(usize),
    /// A cable is pulled or put in.
    Cable(usize),
    /// The admin changes his mind.
    Set(Setting),
    /// The agent takes its turn; pods may come while it thinks, and before the plugin has read what it wrote.
    Agent {
        meanwhile: Option<Ask>,
        unread: Option<Ask>,
        late: bool,
    },
    /// The plugin takes its turn, and the kubelet hears of it.
    Plugin,
    /// A pod comes.
    Start(Ask),
    /// A container ends.
    End(usize),
    /// Time passes.
    Wait(u64),
    /// The plugin ends and starts anew.
    RestartPlugin,
    /// The kubelet ends and starts anew.
    RestartKubelet,
    /// The agent's partition cannot be read any more.
    LosePartition,
    /// The node file is cut off in the middle.
    CutNodeFile,
    /// The node boots.
    Reboot,
}

/// A pod that asks for so many devices of one of the resources.
#[derive(Clone, Debug)]
struct Ask {
    resource: usize,
    count: usize,
}

fn ask() -> impl Strategy<Value = Ask> {
    (0..4_usize, 1..4_usize).prop_map(|(resource, count)| Ask { resource, count })
}

fn event() -> impl Strategy<Value = Event> {
    let agent = (
        proptest::option::weighted(0.3, ask()),
        proptest::option::weighted(0.3, ask()),
        proptest::bool::weighted(0.3),
    );
    let agent = agent.prop_map(|(meanwhile, unread, late)| Event::Agent {
        meanwhile,
        unread,
        late,
    });
    prop_oneof![
        8 => agent,
        6 => ask().prop_map(Event::Start),
        3 => (0..8_usize).prop_map(Event::End),
        2 => Just(Event::Plugin),
        3 => (0..8_u64).prop_map(Event::Wait),
        1 => Just(Event::Wait(400)),
        3 => setting().prop_map(Event::Set),
        1 => (0..MAX).prop_map(Event::Gpu),
        1 => (0..MAX).prop_map(Event::Nic),
        1 => (0..MAX).prop_map(Event::Driver),
        1 => (0..MAX).prop_map(Event::Cable),
        1 => Just(Event::RestartPlugin),
        1 => Just(Event::RestartKubelet),
        1 => Just(Event::LosePartition),
        1 => Just(Event::CutNodeFile),
        1 => Just(Event::Reboot),
    ]
}

struct Life {
    hardware: Hardware,
    agent: Agent,
    kubelet: Kubelet,
    bench: Option<Bench>,
    now: u64,
}

impl Life {
    fn new(machine: Machine) -> Self {
        let mut life = Self {
            hardware: Hardware::new(machine),
            agent: Agent::default(),
            kubelet: Kubelet::default(),
            bench: Some(super::bench()),
            now: 0,
        };
        life.agent(None, None, false);
        life
    }

    fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().unwrap()
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Gpu(at) => self.hardware.toggle_gpu(at),
            Event::Nic(at) => self.hardware.toggle_nic(at),
            Event::Driver(at) => self.hardware.toggle_driver(at),
            Event::Cable(at) => self.hardware.toggle_cable(at),
            Event::Set(setting) => self.agent.setting = setting,
            Event::Agent {
                meanwhile,
                unread,
                late,
            } => self.agent(meanwhile, unread, late),
            Event::Plugin => self.plugin(),
            Event::Start(ask) => self.start(&ask),
            Event::End(at) => self.kubelet.end(at),
            Event::Wait(seconds) => self.wait(seconds),
            Event::RestartPlugin => self.restart_plugin(),
            Event::RestartKubelet => self.kubelet.forget(),
            Event::LosePartition if self.node_file_is_cut() => {}
            Event::LosePartition => self.agent.lose(),
            Event::CutNodeFile if self.agent.has_lost() => {}
            Event::CutNodeFile => self.cut_node_file(),
            Event::Reboot => self.reboot(),
        }
    }

    fn agent(&mut self, meanwhile: Option<Ask>, unread: Option<Ask>, late: bool) {
        let path = self.bench().dir.path().join("node.json");
        let (now, held) = (self.now, self.kubelet.held());
        let file = self.agent.turn(&path, &self.hardware.seen(), &held, now);
        if let Some(ask) = meanwhile {
            self.start(&ask);
        }
        self.agent.write(&path, &file, now);
        if let Some(ask) = unread {
            self.start(&ask);
        }
        if !late {
            self.plugin();
        }
    }

    fn plugin(&mut self) {
        let (now, sightings) = (self.now, self.hardware.sightings());
        let bench = self.bench();
        bench.sight.send_replace(Arc::new(sightings));
        bench.run(now);
        let snapshot = bench.snapshots.borrow_and_update().clone();
        self.kubelet.hear(&snapshot);
    }

    fn start(&mut self, ask: &Ask) {
        let snapshot = self.bench().snapshots.borrow().clone();
        self.kubelet.start(&snapshot, ask.resource, ask.count);
    }

    /// The plugin looks every second, so a node file is known long before the agent takes it for known.
    fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds.min(4) {
            self.now += 1;
            self.plugin();
        }
        self.now += seconds.saturating_sub(4);
        self.plugin();
    }

    /// Nothing that was believed is left. The kubelet takes every device of a lost plugin for unhealthy.
    fn restart_plugin(&mut self) {
        let dir = self.bench.take().unwrap().dir;
        self.kubelet.lose_plugin();
        self.bench = Some(super::bench_in(dir));
        self.plugin();
    }

    fn node_file_is_cut(&mut self) -> bool {
        let text = std::fs::read_to_string(self.bench().dir.path().join("node.json"));
        text.is_ok_and(|text| topology::node_file::NodeFile::parse(&text).is_err())
    }

    fn cut_node_file(&mut self) {
        let path = self.bench().dir.path().join("node.json");
        if let Ok(text) = std::fs::read_to_string(&path) {
            std::fs::write(path, &text[..text.len() / 2]).unwrap();
        }
    }

    /// Containers end, and what is below `/run` goes with the old boot.
    fn reboot(&mut self) {
        self.kubelet.reboot();
        let path = self.bench().dir.path().join("node.json");
        let _ = std::fs::remove_file(path);
        self.restart_plugin();
    }

    fn check(&self) {
        let mut gpus = BTreeSet::new();
        for gpu in self.kubelet.gpus() {
            assert!(gpus.insert(gpu), "{gpu} is in two live containers");
        }
        let nics = self.kubelet.nics();
        for (at, (container, nic, shared)) in nics.iter().enumerate() {
            for (other, same, also) in &nics[at + 1..] {
                assert!(
                    nic != same || container == other || (*shared && *also),
                    "{nic} is in two live containers and not declared shared in both"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn no_life_of_a_node_gives_one_device_to_two_containers(
        machine in machine::machine(),
        events in proptest::collection::vec(event(), 1..40),
    ) {
        let mut life = Life::new(machine);
        for event in events {
            life.step(event);
            life.check();
        }
    }
}

/// The model is able to hand devices out, and to lose them: else the property would hold of a node that does nothing.
#[test]
fn a_quiet_node_hands_out_all_that_it_has() {
    let mut life = Life::new(hardware(&[0, 0, 1, 1], &[0, 1]));
    let all = Ask {
        resource: 1,
        count: 2,
    };
    for _ in 0..3 {
        life.start(&all);
        life.check();
    }
    assert_eq!(life.kubelet.gpus().count(), 4);
    assert!(life.kubelet.nics().iter().all(|(_, _, shared)| *shared));
    life.step(Event::End(0));
    life.step(Event::Nic(0));
    life.agent(None, None, false);
    life.start(&all);
    assert_eq!(
        life.kubelet.gpus().count(),
        2,
        "half of the pairs lack a NIC"
    );
    let sight = life.hardware.sightings();
    assert!(sight.values().all(|seen| *seen == Seen::Up));
}
