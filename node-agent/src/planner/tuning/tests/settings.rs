//! Read requests, namespaces of RDMA, link types: what is written and what is in effect.

use crds::fabric::{LinkLayer, RdmaNetns};
use host::facts::tuning::firmware::Setting;
use host::facts::tuning::namespaces::ModuleOption;

use super::*;
use crate::action::{LinkType, NETNS_FILE};

fn reads(bytes: u32) -> Scene {
    Scene::asks(|config| config.tuning.max_read_request_bytes = Some(bytes))
}

#[test]
fn read_requests() {
    // c5: 4096 is wanted of the physical function; at run time only.
    reads(4096).check("read_request_raised");
    reads(512).check("read_request_as_asked");
    reads(1000).check("read_request_of_no_size");
    reads(4096)
        .with(|scene| scene.machine.nics[0].physfn = Some(pci("0000:14:00.1")))
        .check("read_request_of_a_virtual_function");
    reads(4096)
        .tuned(|tuning| tuning.lockdown = Fact::Known("confidentiality".to_owned()))
        .check("read_request_under_lockdown");
    reads(4096)
        .tuned(|tuning| tuning.pcie.clear())
        .check("read_request_unread");
}

/// The change was prepared in an earlier boot.
fn rebooted_for(change: TuningChange) -> impl FnOnce(&mut Scene) {
    let change = Change::Tuning(change);
    move |scene| {
        let attempts = &mut scene.memory.attempts;
        let desired = Desired::of_config(scene.config.clone()).unwrap();
        attempts.install_hash = desired.install_hash;
        attempts.begin(&change, k8s_openapi::jiff::Timestamp::UNIX_EPOCH);
        attempts.prepared(&change, "boot-0");
        *attempts = attempts.clone().booted(BOOT);
    }
}

fn netns(
    mode: RdmaNetns,
    shared: Fact<bool>,
    options: &[(&str, &str)],
    namespaces: &[&str],
) -> Scene {
    let option = |(file, value): &(&str, &str)| ModuleOption {
        file: (*file).to_owned(),
        value: (*value).to_owned(),
    };
    let options = options.iter().map(option).collect();
    let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
    Scene::asks(|config| config.tuning.rdma_netns = Some(mode)).tuned(|tuning| {
        tuning.rdma_netns.shared = shared;
        tuning.rdma_netns.options = Fact::Known(options);
        tuning.rdma_netns.namespaces = Fact::Known(namespaces);
    })
}

#[test]
fn namespaces_of_rdma() {
    use RdmaNetns::{Exclusive, Shared};
    // G66: the mode does not change while another namespace exists, as wherever pods run.
    netns(Exclusive, Fact::Known(true), &[], &["cni-1"]).check("netns_exclusive_wanted");
    netns(Shared, Fact::Known(true), &[], &["cni-1"]).check("netns_as_asked");
    let ours = [(NETNS_FILE, "netns_mode=0")];
    netns(Exclusive, Fact::Known(true), &ours, &["cni-1", "cni-2"])
        .check("netns_written_and_not_in_effect");
    netns(Exclusive, Fact::Known(true), &ours, &["cni-1"])
        .with(rebooted_for(TuningChange::RdmaNetns {
            shared: Some(false),
        }))
        .check("netns_not_in_effect_after_the_reboot");
    netns(Exclusive, Fact::Known(false), &ours, &[]).check("netns_in_effect");
    netns(Shared, Fact::Known(false), &ours, &[]).check("netns_changed_back");
    netns(
        Shared,
        Fact::Known(false),
        &[("/etc/modprobe.d/site.conf", "netns_mode=0")],
        &[],
    )
    .check("netns_set_by_another_file");
    netns(Exclusive, Fact::Absent, &[], &[]).check("netns_before_ib_core_is_loaded");
    let builtin =
        |scene: &mut Scene| _ = scene.built_in.insert(ModuleName::new("ib_core").unwrap());
    netns(Exclusive, Fact::Known(true), &[], &[])
        .with(builtin)
        .check("netns_of_a_module_in_the_kernel");
    netns(
        Exclusive,
        Fact::Unreadable("read netns_mode: EIO".to_owned()),
        &[],
        &[],
    )
    .check("netns_unreadable");
}

fn link(layer: LinkLayer, settings: &[(&str, &str, &str)]) -> Scene {
    let setting = |(name, current, next): &(&str, &str, &str)| {
        let setting = Setting {
            current: (*current).to_owned(),
            next: (*next).to_owned(),
        };
        ((*name).to_owned(), setting)
    };
    let settings = settings.iter().map(setting).collect();
    Scene::asks(|config| config.fabric.link_layer = Some(layer)).tuned(|tuning| {
        _ = tuning
            .firmware
            .insert(pci("0000:14:00.0"), Fact::Known(settings));
    })
}

#[test]
fn link_types() {
    let infiniband = [("LINK_TYPE_P1", "IB(1)", "IB(1)")];
    link(LinkLayer::InfiniBand, &[]).check("link_type_as_asked");
    link(LinkLayer::Ethernet, &infiniband).check("link_type_differs");
    link(LinkLayer::Ethernet, &[("LINK_TYPE_P1", "IB(1)", "ETH(2)")])
        .check("link_type_written_and_not_in_effect");
    // O54: what the firmware says it will be is not what the reboot brought.
    link(LinkLayer::Ethernet, &[("LINK_TYPE_P1", "IB(1)", "ETH(2)")])
        .with(rebooted_for(TuningChange::LinkType {
            function: pci("0000:14:00.0"),
            port: 1,
            link: LinkType::Ethernet,
        }))
        .check("link_type_not_in_effect_after_the_reboot");
    link(
        LinkLayer::Ethernet,
        &[("ATS_ENABLED", "False(0)", "False(0)")],
    )
    .check("link_type_of_a_card_with_one_type");
    link(LinkLayer::Ethernet, &infiniband)
        .with(|scene| scene.machine.nics[0].role = NicRole::Management)
        .check("link_type_of_a_management_nic");
    link(LinkLayer::Ethernet, &infiniband)
        .tuned(|tuning| {
            _ = tuning.firmware.insert(
                pci("0000:14:00.0"),
                Fact::Unreadable("mstconfig is not installed".to_owned()),
            );
        })
        .check("link_type_without_the_tool");
    // The second function of a card is its second port.
    let second = |scene: &mut Scene| {
        let settings = scene.tuning.firmware.remove(&pci("0000:14:00.0")).unwrap();
        scene.tuning.firmware.insert(pci("0000:14:00.1"), settings);
        scene.machine.nics[0].pci = Some(pci("0000:14:00.1"));
    };
    let both = [
        ("LINK_TYPE_P1", "IB(1)", "IB(1)"),
        ("LINK_TYPE_P2", "IB(1)", "IB(1)"),
    ];
    link(LinkLayer::Ethernet, &both)
        .with(second)
        .check("link_type_of_the_second_port");
}
