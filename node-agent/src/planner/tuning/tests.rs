//! One golden per scenario, as a person would read the plan. Report ids (`G17`, `O8`) stand beside those that come from
//! someone's report.

mod acs;
mod firewalls;
mod memlock;
mod modules;
mod restores;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use crds::fabric::Acs;
use crds::node::NodeConfig;
use host::facts::Facts;
use host::facts::network::Network;
use host::facts::tuning::pcie::{AcsBits, PcieFunction};
use topology::machine::{self, Machine, NicRole, PciFunction, PciKind, PciParent};

use super::*;
use crate::action::{Change, TuningChange};
use crate::desired::Desired;
use crate::findings;
use crate::host_state::HostState;
use crate::modules::ModuleName;
use crate::planner::{self, Memory};
use crate::render;

const BOOT: &str = "boot-1";

fn pci(text: &str) -> PciAddress {
    text.parse().unwrap()
}

fn function(parent: PciParent, kind: PciKind, ids: (u16, u16)) -> PciFunction {
    PciFunction {
        parent,
        kind,
        numa: Fact::Known(0),
        class: Fact::Known(0x06_04_00),
        vendor: Fact::Known(ids.0),
        device: Fact::Known(ids.1),
    }
}

/// A root port above a switch with a GPU (13:00.0) and a NIC (14:00.0) below its downstream ports 12:00.0 and 12:01.0.
fn box_with_a_switch() -> Machine {
    let below = |text: &str| PciParent::Bridge(pci(text));
    let switch = (0x1000, 0xc030);
    let functions = BTreeMap::from([
        (
            pci("0000:10:00.0"),
            function(
                PciParent::HostBridge("pci0000:10".to_owned()),
                PciKind::RootPort,
                (0x8086, 0x352a),
            ),
        ),
        (
            pci("0000:11:00.0"),
            function(below("0000:10:00.0"), PciKind::SwitchUpstream, switch),
        ),
        (
            pci("0000:12:00.0"),
            function(below("0000:11:00.0"), PciKind::SwitchDownstream, switch),
        ),
        (
            pci("0000:12:01.0"),
            function(below("0000:11:00.0"), PciKind::SwitchDownstream, switch),
        ),
        (
            pci("0000:13:00.0"),
            function(below("0000:12:00.0"), PciKind::Gpu, (0x10de, 0x2330)),
        ),
        (
            pci("0000:14:00.0"),
            function(below("0000:12:01.0"), PciKind::Nic, (0x15b3, 0x1021)),
        ),
    ]);
    Machine {
        gpus: vec![gpu()],
        nics: vec![nic()],
        functions,
        ..Machine::default()
    }
}

fn gpu() -> machine::Gpu {
    machine::Gpu {
        index: 0,
        uuid: Fact::Absent,
        pci: Some(pci("0000:13:00.0")),
        minor: Fact::Absent,
        numa: Fact::Known(0),
        product: Fact::Absent,
        bar1_bytes: Fact::Absent,
        nvlinks: BTreeMap::new(),
    }
}

/// An InfiniBand NIC.
fn nic() -> machine::Nic {
    let port = machine::Port {
        number: 1,
        state: Fact::Known(machine::PortState::Active),
        link_layer: Fact::Known(machine::LinkLayer::InfiniBand),
        rate_mbps: Fact::Known(400_000),
    };
    machine::Nic {
        index: 0,
        rdma: Some("mlx5_0".to_owned()),
        pci: Some(pci("0000:14:00.0")),
        numa: Fact::Known(0),
        netdevs: vec!["ens1".to_owned()],
        ports: vec![port],
        physfn: None,
        bond: false,
        uverbs: Fact::Known(0),
        ids: Fact::Known((0x15b3, 0x1021)),
        role: NicRole::Compute,
    }
}

fn endpoint() -> PcieFunction {
    PcieFunction {
        acs: Fact::Absent,
        ats: Fact::Known(false),
        max_payload: Fact::Known(256),
        max_read_request: Fact::Known(512),
        slot_power: Fact::Absent,
        temperature: Fact::Absent,
        iommu_group: Fact::Absent,
        iommu_type: Fact::Absent,
    }
}

fn port_with(control: u16) -> PcieFunction {
    PcieFunction {
        acs: Fact::Known(AcsBits {
            capability: 0x5f,
            control,
        }),
        ats: Fact::Absent,
        ..endpoint()
    }
}

/// Bare metal without an IOMMU; both downstream ports redirect.
fn bare_metal() -> Tuning {
    Tuning {
        pcie: BTreeMap::from([
            (pci("0000:10:00.0"), port_with(0x1d)),
            (pci("0000:11:00.0"), endpoint()),
            (pci("0000:12:00.0"), port_with(0x1d)),
            (pci("0000:12:01.0"), port_with(0x1d)),
            (pci("0000:13:00.0"), endpoint()),
            (pci("0000:14:00.0"), endpoint()),
        ]),
        passed_through: Fact::Known(BTreeMap::new()),
        lockdown: Fact::Known("none".to_owned()),
        hypervisor: Fact::Known(false),
        ..Tuning::default()
    }
}

struct Scene {
    machine: Machine,
    tuning: Tuning,
    config: NodeConfig,
    built_in: BTreeSet<ModuleName>,
    memory: Memory,
}

impl Scene {
    fn asks(config: impl FnOnce(&mut NodeConfig)) -> Self {
        let mut asked = NodeConfig::default();
        config(&mut asked);
        Self {
            machine: box_with_a_switch(),
            tuning: bare_metal(),
            config: asked,
            built_in: BTreeSet::new(),
            memory: Memory::default(),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn tuned(self, change: impl FnOnce(&mut Tuning)) -> Self {
        self.with(|scene| change(&mut scene.tuning))
    }

    fn pcie(self, port: &str, change: impl FnOnce(&mut PcieFunction)) -> Self {
        self.tuned(|tuning| change(tuning.pcie.get_mut(&pci(port)).unwrap()))
    }

    fn state(&self) -> HostState {
        let mut network = Network::default();
        // Ranges of rails are looked for on the interfaces.
        network.links.fact = Fact::Known(BTreeMap::new());
        HostState {
            boot_id: BOOT.to_owned(),
            built_in: self.built_in.clone(),
            facts: Facts {
                machine: self.machine.clone(),
                tuning: self.tuning.clone(),
                network,
                ..Facts::default()
            },
            ..HostState::default()
        }
    }

    fn check(self, scenario: &str) {
        let desired = Desired::of_config(self.config.clone()).unwrap();
        let state = self.state();
        let world = World {
            state: &state,
            machine: &self.machine,
            desired: &desired,
            memory: &self.memory.clone().current(&desired),
            now: "2026-03-01T12:00:00Z".parse().unwrap(),
        };
        golden(scenario, planner::plan(&world));
    }
}

fn golden(scenario: &str, mut plan: Plan) {
    findings::sort(&mut plan.findings);
    let text = format!(
        "{}\n{}",
        render::actions(&plan),
        render::findings(&plan.findings)
    );
    insta::with_settings!({snapshot_path => "snapshots"}, { insta::assert_snapshot!(scenario, text) });
}
