//! One golden per scenario, as a person would read the plan. Where a scenario is from a public report, a comment names it.

mod infiniband;
mod protection;
mod rails;
mod roce;

use std::collections::BTreeSet;

use crds::node::NodeConfig;
use host::facts::Sourced;
use host::facts::network::{
    Address, Dcb, Depends, Ecn, Ets, Interface, Link, Network, Owner, PortSettings, Route,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use topology::fact::Fact;
use topology::machine::{LinkLayer, Machine, Nic};

use crate::action::{Change, Explain, FabricChange, Netdev};
use crate::desired::Desired;
use crate::host_state::HostState;
use crate::planner::{Memory, Plan, World, plan};
use crate::render;
use crate::test_network::{link, nic};

const BOOT: &str = "boot-1";

fn found<T>(value: T) -> Sourced<T> {
    Sourced {
        source: "the test".to_owned(),
        fact: Fact::Known(value),
    }
}

fn absent<T>(source: &str) -> Sourced<T> {
    Sourced {
        source: source.to_owned(),
        fact: Fact::Absent,
    }
}

/// A host and its NICs, of which nothing is protected.
struct Scene {
    state: HostState,
    machine: Machine,
    memory: Memory,
}

/// Priorities as a new mlx5 port has them.
fn dcb() -> Dcb {
    Dcb {
        dcbx: found(vec!["host".to_owned(), "ieee".to_owned()]),
        pfc: found(Vec::new()),
        ets: found(Ets {
            priority_classes: vec![1, 0, 2, 3, 4, 5, 6, 7],
            algorithms: vec!["vendor".to_owned(); 8],
            shares: vec![0; 8],
        }),
        dscp: found([(26, 3)].into()),
        trust: absent("/sys/class/net/eth0/qos/trust"),
        buffers: absent("dcb -j buffer show dev eth0"),
    }
}

fn in_tree() -> Ecn {
    Ecn {
        reaction: absent("/sys/class/net/eth0/ecn/roce_rp/enable"),
        notification: absent("/sys/class/net/eth0/ecn/roce_np/enable"),
    }
}

impl Scene {
    /// NICs with one interface each.
    fn new(nics: Vec<Nic>) -> Self {
        let mut scene = Self {
            state: HostState {
                boot_id: BOOT.to_owned(),
                ..HostState::default()
            },
            machine: Machine::default(),
            memory: Memory::default(),
        };
        scene.state.facts.network = Network {
            links: found(std::collections::BTreeMap::new()),
            routes: found(Vec::new()),
            rules: found(Vec::new()),
            depends: Depends {
                api_servers: absent("/etc/kubernetes/kubelet.conf"),
                connections: found(Vec::new()),
                peers: found(Vec::new()),
            },
            ..Network::default()
        };
        for nic in nics {
            scene.add(nic);
        }
        scene
    }

    fn add(&mut self, nic: Nic) {
        let infiniband = nic.ports[0].link_layer == Fact::Known(LinkLayer::InfiniBand);
        for name in &nic.netdevs {
            let index = u32::try_from(self.links().len()).unwrap() + 2;
            self.links().insert(name.clone(), link(index));
            let interface = Interface {
                dcb: (!infiniband).then(dcb),
                ecn: (!infiniband).then(in_tree),
                ..Interface::default()
            };
            self.network().interfaces.insert(name.clone(), interface);
        }
        let settings = PortSettings {
            roce_mode: absent("default_roce_mode"),
            tos: absent("default_roce_tos"),
            traffic_class: absent("/sys/class/infiniband/mlx5_0/tc/1/traffic_class"),
            has_traffic_class: false,
            configfs: true,
        };
        let ports = [(1, settings)].into();
        self.network().ports.insert(nic.name(), ports);
        self.machine.nics.push(nic);
    }

    fn network(&mut self) -> &mut Network {
        &mut self.state.facts.network
    }

    fn links(&mut self) -> &mut std::collections::BTreeMap<String, Link> {
        match &mut self.network().links.fact {
            Fact::Known(links) => links,
            other => panic!("{other:?}"),
        }
    }

    fn link(&mut self, name: &str) -> &mut Link {
        self.links().get_mut(name).unwrap()
    }

    fn over(&mut self, name: &str, kind: &str, lower: Option<&str>) -> &mut Link {
        let index = 20 + u32::try_from(self.links().len()).unwrap();
        let link = Link {
            kind: Some(kind.to_owned()),
            lower: lower.map(str::to_owned),
            ..link(index)
        };
        self.links().insert(name.to_owned(), link);
        self.link(name)
    }

    fn interface(&mut self, name: &str) -> &mut Interface {
        self.network().interfaces.get_mut(name).unwrap()
    }

    fn dcb(&mut self, name: &str) -> &mut Dcb {
        self.interface(name).dcb.as_mut().unwrap()
    }

    fn port(&mut self, device: &str) -> &mut PortSettings {
        self.network()
            .ports
            .get_mut(device)
            .unwrap()
            .get_mut(&1)
            .unwrap()
    }

    fn address(&mut self, name: &str, net: &str) -> &mut Address {
        let address = Address {
            net: net.parse().unwrap(),
            scope: "global".to_owned(),
            dynamic: false,
            duplicate: false,
        };
        self.link(name).addresses.push(address);
        self.link(name).addresses.last_mut().unwrap()
    }

    fn default_route(&mut self, table: &str, device: &str) {
        let route = Route {
            table: table.to_owned(),
            to: "0.0.0.0/0".parse().unwrap(),
            devices: vec![device.to_owned()],
            gateways: Vec::new(),
            protocol: None,
        };
        match &mut self.network().routes.fact {
            Fact::Known(routes) => routes.push(route),
            other => panic!("{other:?}"),
        }
    }

    fn owner(&mut self, name: &str, owner: Owner) {
        self.interface(name).owners.push(owner);
    }

    fn netdev(&mut self, name: &str) -> Netdev {
        Netdev {
            name: name.to_owned(),
            index: self.link(name).index,
        }
    }

    /// The agent did this an hour ago.
    fn did(&mut self, done: FabricChange, undo: FabricChange) {
        let at = Time("2026-03-01T11:00:00Z".parse().unwrap());
        let journal = &mut self.memory.journal;
        journal.changing(&Change::Fabric(done), &Change::Fabric(undo), BOOT, at);
    }

    fn plan(&self, config: &str) -> Plan {
        let config: NodeConfig = serde_yaml::from_str(config).unwrap();
        let desired = Desired::of_config(config).unwrap();
        let mut memory = self.memory.clone();
        memory
            .attempts
            .install_hash
            .clone_from(&desired.install_hash);
        plan(&World {
            state: &self.state,
            machine: &self.machine,
            desired: &desired,
            memory: &memory.current(&desired),
            now: "2026-03-01T12:00:00Z".parse().unwrap(),
        })
    }

    /// The golden of what `config` gives here.
    fn check(&self, scenario: &str, config: &str) {
        let plan = self.plan(config);
        let text = format!(
            "{}\n{}\n{}",
            config.trim(),
            render::actions(&plan),
            render::findings(&plan.findings)
        );
        insta::assert_snapshot!(scenario, text);
    }
}

/// One RoCE NIC, `mlx5_0` with eth0.
fn roce_node() -> Scene {
    Scene::new(vec![nic(0, "eth0")])
}

/// One InfiniBand NIC, `mlx5_0` with ib0 in datagram mode.
fn infiniband_node() -> Scene {
    let mut nic = nic(0, "ib0");
    nic.ports[0].link_layer = Fact::Known(LinkLayer::InfiniBand);
    let mut scene = Scene::new(vec![nic]);
    *scene.link("ib0") = Link {
        layer: "infiniband".to_owned(),
        kind: Some("ipoib".to_owned()),
        mtu: 2044,
        max_mtu: Some(65520),
        transmit_queues: Some(1),
        ipoib: Some(host::facts::network::Child {
            pkey: Some(0xffff),
            mode: Some("datagram".to_owned()),
        }),
        ..link(2)
    };
    scene
}

#[test]
fn an_empty_configuration_plans_nothing_anywhere() {
    let mut scene = roce_node();
    scene.network().links.fact = Fact::Unreadable("EIO".to_owned());
    let plan = scene.plan("{}");
    assert_eq!((plan.actions.len(), plan.findings.len()), (0, 0));
}

#[test]
fn what_is_as_asked_plans_nothing() {
    let mut scene = roce_node();
    scene.link("eth0").mtu = 9000;
    scene.dcb("eth0").pfc = found(vec![3]);
    scene.port("mlx5_0").roce_mode = found("RoCE v2".to_owned());
    scene.port("mlx5_0").tos = found(104);
    scene.address("eth0", "10.10.0.7/16");
    let plan = scene.plan(
        "{fabric: {rdmaMtu: 4096, roce: {netdevMtu: 9000, version: v2, dscp: 26, pfcPriorities: [3]}}, rails: [{pci: '0000:01:00.0', rail: 0}], addresses: [{rail: 0, address: 10.10.0.7/16}]}",
    );
    let met: Vec<_> = plan.met.iter().map(Explain::kind).collect();
    let kinds = [
        "SetMtu",
        "SetAddress",
        "SetPfc",
        "SetDscp",
        "SetRoceMode",
        "SetRoceTos",
    ];
    assert_eq!(met, kinds);
    let other = Plan {
        met: plan.met.clone(),
        ..Plan::default()
    };
    assert_eq!(plan, other);
}

/// A second plan after the first was carried out would ask for the same, by place: no place is named twice.
#[test]
fn no_place_is_changed_twice_in_a_plan() {
    let scene = Scene::new(vec![nic(0, "eth0"), nic(1, "eth1")]);
    let plan = scene.plan(
        "{fabric: {rdmaMtu: 4096, roce: {netdevMtu: 9000, version: v1, dscp: 46, pfcPriorities: [3, 4]}, trafficClasses: [{name: gpu, priority: 3, share: 60}]}}",
    );
    let places: BTreeSet<String> = plan
        .actions
        .iter()
        .map(|action| action.change.place())
        .collect();
    assert_eq!(places.len(), plan.actions.len());
    assert!(plan.actions.len() >= 12, "{}", plan.actions.len());
    for action in &plan.actions {
        let undo = action.undo.as_ref().unwrap();
        assert_eq!(undo.place(), action.change.place());
        assert_ne!(*undo, action.change);
    }
}
