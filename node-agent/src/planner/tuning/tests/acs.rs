//! Access control services between GPU and NIC.

use super::*;
use crate::planner::restore;

fn acs() -> Scene {
    Scene::asks(|config| config.tuning.acs = Some(Acs::Disable))
}

#[test]
fn redirection_on_the_path() {
    Scene::asks(|_| {}).check("acs_not_asked");
    // G17, G18: half of the bandwidth, or NCCL fails, while host memory shows the full rate.
    acs().check("acs_redirects_on_both_ports");
    acs()
        .pcie("0000:12:01.0", |port| {
            port.acs = Fact::Known(AcsBits {
                capability: 0x5f,
                control: 0x01,
            });
        })
        .check("acs_source_validation_alone_is_left");
    acs()
        .pcie("0000:12:00.0", |port| port.acs = Fact::Absent)
        .check("acs_port_without_the_capability");
    // c4: without root the registers are hidden, and hidden is not off.
    let hidden = || Fact::Unreadable("read config: 64 of 4096 bytes are readable".to_owned());
    acs()
        .pcie("0000:12:00.0", |port| port.acs = hidden())
        .check("acs_hidden_is_not_off");
    acs()
        .with(|scene| scene.machine.nics[0].role = NicRole::Storage)
        .check("acs_of_a_storage_nic_is_no_concern");
}

#[test]
fn redirection_is_left_where_it_protects() {
    // G19: an IOMMU that translates is told by its group's type, not by the command line.
    let translating = |function: &mut PcieFunction| {
        function.iommu_group = Fact::Known("17".to_owned());
        function.iommu_type = Fact::Known("DMA-FQ".to_owned());
    };
    acs()
        .pcie("0000:14:00.0", translating)
        .check("acs_with_an_iommu_that_translates");
    let passthrough = |function: &mut PcieFunction| {
        function.iommu_group = Fact::Known("17".to_owned());
        function.iommu_type = Fact::Known("identity".to_owned());
    };
    acs()
        .pcie("0000:14:00.0", passthrough)
        .check("acs_with_an_iommu_in_passthrough");
    // G24: virtual functions bring redirection on; one that a guest has keeps it.
    let held = BTreeMap::from([(pci("0000:14:00.0"), "vfio-pci".to_owned())]);
    acs()
        .tuned(|tuning| tuning.passed_through = Fact::Known(held))
        .check("acs_with_a_guests_device_behind_the_port");
    // G25: passthrough wants ATS on the NIC together with redirection.
    acs()
        .pcie("0000:14:00.0", |nic| nic.ats = Fact::Known(true))
        .check("acs_with_ats_on");
    // G28: in a guest, direct traffic without translation gave wrong data.
    acs()
        .tuned(|tuning| tuning.hypervisor = Fact::Known(true))
        .check("acs_in_a_virtual_machine");
    acs()
        .tuned(|tuning| tuning.lockdown = Fact::Known("integrity".to_owned()))
        .check("acs_under_lockdown");
    // c3: Grace, Vera and NICs with a switch of their own have rules that rdma_topo knows.
    let grace = |scene: &mut Scene| {
        let root = scene
            .machine
            .functions
            .get_mut(&pci("0000:10:00.0"))
            .unwrap();
        (root.vendor, root.device) = (Fact::Known(0x10de), Fact::Known(0x22b1));
    };
    acs().with(grace).check("acs_below_a_root_port_of_grace");
}

#[test]
fn redirection_between_root_ports_and_by_someone_else() {
    let apart = |scene: &mut Scene| {
        let other = function(
            PciParent::HostBridge("pci0000:10".to_owned()),
            PciKind::RootPort,
            (0x8086, 0x352b),
        );
        scene.machine.functions.insert(pci("0000:10:01.0"), other);
        scene
            .machine
            .functions
            .get_mut(&pci("0000:14:00.0"))
            .unwrap()
            .parent = PciParent::Bridge(pci("0000:10:01.0"));
        scene
            .tuning
            .pcie
            .insert(pci("0000:10:01.0"), port_with(0x1d));
    };
    acs()
        .with(apart)
        .check("acs_of_root_ports_where_no_switch_is_shared");
    let set_before = |scene: &mut Scene| {
        let desired = Desired::of_config(scene.config.clone()).unwrap();
        scene
            .memory
            .attempts
            .install_hash
            .clone_from(&desired.install_hash);
        let to = |bits| {
            Change::Tuning(TuningChange::AcsRedirects {
                port: pci("0000:12:00.0"),
                bits,
            })
        };
        let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-03-01T11:00:00Z".parse().unwrap(),
        );
        scene.memory.journal.changing(&to(0), &to(0x1c), BOOT, at);
    };
    acs()
        .with(set_before)
        .check("acs_set_again_by_someone_in_the_same_boot");
    let scene = acs().with(set_before);
    let restored = restore(
        &scene.state(),
        &scene.memory,
        "2026-03-01T12:00:00Z".parse().unwrap(),
    );
    golden("acs_restored", restored);
}
