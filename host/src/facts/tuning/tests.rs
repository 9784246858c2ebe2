use std::collections::BTreeMap;

use topology::machine::{PciFunction, PciKind, PciParent};

use super::*;
use crate::fixture::{ConfigSpace, FixtureOptions, write};

fn pci(text: &str) -> PciAddress {
    text.parse().unwrap()
}

/// A root port above a switch with a GPU and a NIC.
fn described() -> Machine {
    let function = |parent: PciParent, kind, class| PciFunction {
        parent,
        kind,
        numa: Fact::Known(0),
        class: Fact::Known(class),
        vendor: Fact::Known(if class == 0x03_02_00 { 0x10de } else { 0x15b3 }),
        device: Fact::Known(0x1021),
    };
    let below = |text: &str| PciParent::Bridge(pci(text));
    let bridge = 0x06_04_00;
    let functions = BTreeMap::from([
        (
            pci("0000:10:00.0"),
            function(
                PciParent::HostBridge("pci0000:10".to_owned()),
                PciKind::RootPort,
                bridge,
            ),
        ),
        (
            pci("0000:11:00.0"),
            function(below("0000:10:00.0"), PciKind::SwitchUpstream, bridge),
        ),
        (
            pci("0000:12:00.0"),
            function(below("0000:11:00.0"), PciKind::SwitchDownstream, bridge),
        ),
        (
            pci("0000:12:01.0"),
            function(below("0000:11:00.0"), PciKind::SwitchDownstream, bridge),
        ),
        (
            pci("0000:13:00.0"),
            function(below("0000:12:00.0"), PciKind::Other, 0x03_02_00),
        ),
        (
            pci("0000:14:00.0"),
            function(below("0000:12:01.0"), PciKind::Other, 0x02_07_00),
        ),
    ]);
    let mut machine = Machine {
        functions,
        ..Machine::default()
    };
    let file = topology::file::parse(include_str!(
        "../../../../topology/tests/machines/a100-sxm4-4gpu-1nic-other-socket.yaml"
    ));
    let other = file.unwrap().machine;
    machine.gpus = other.gpus.into_iter().take(1).collect();
    machine.nics = other.nics.into_iter().take(1).collect();
    machine.gpus[0].pci = Some(pci("0000:13:00.0"));
    machine.nics[0].pci = Some(pci("0000:14:00.0"));
    machine
}

fn read(config: ConfigSpace, prepare: impl Fn(&Root)) -> Tuning {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    let options = FixtureOptions {
        config,
        acs_control: 0x1d,
        ..FixtureOptions::default()
    };
    let machine = write(&described(), &options, &root).unwrap();
    prepare(&root);
    tuning(&root, &machine, &ToolAnswers::recorded(&root), Scope::ALL)
}

#[test]
fn ports_on_the_path_show_their_acs_and_endpoints_their_sizes() {
    let tuning = read(ConfigSpace::Full, |_| {});
    let port = &tuning.pcie[&pci("0000:12:00.0")];
    assert_eq!(
        port.acs,
        Fact::Known(pcie::AcsBits {
            capability: 0x5f,
            control: 0x1d
        })
    );
    assert_eq!(port.acs.known().unwrap().redirects(), 0x1c);
    assert_eq!(port.slot_power, Fact::Known(75_000));
    assert_eq!(
        tuning.pcie[&pci("0000:11:00.0")].acs,
        Fact::Absent,
        "an upstream port has none"
    );
    let nic = &tuning.pcie[&pci("0000:14:00.0")];
    assert_eq!(
        (&nic.max_payload, &nic.max_read_request),
        (&Fact::Known(256), &Fact::Known(512))
    );
    assert_eq!((&nic.ats, &nic.acs), (&Fact::Known(false), &Fact::Absent));
}

#[test]
fn what_only_root_may_read_is_unknown_to_others_and_never_off() {
    let tuning = read(ConfigSpace::Header, |_| {});
    let port = &tuning.pcie[&pci("0000:12:00.0")];
    assert!(
        matches!(&port.acs, Fact::Unreadable(why) if why.contains("64 of 4096 bytes")),
        "{port:?}"
    );
    assert!(matches!(port.max_read_request, Fact::Unreadable(_)));
}

#[test]
fn a_function_that_sleeps_is_not_woken() {
    let asleep = |root: &Root| {
        root.put(
            "/sys/bus/pci/devices/0000:13:00.0/power/runtime_status",
            "suspended\n",
        )
        .unwrap();
    };
    let tuning = read(ConfigSpace::Full, asleep);
    assert!(
        matches!(&tuning.pcie[&pci("0000:13:00.0")].ats, Fact::Unreadable(why) if why.contains("sleeps"))
    );
}

#[test]
fn sensors_drivers_of_guests_and_lockdown_are_read() {
    let tuning = read(ConfigSpace::Full, |root| {
        root.put(
            "/sys/bus/pci/devices/0000:14:00.0/hwmon/hwmon3/temp1_input",
            "61000\n",
        )
        .unwrap();
        root.put(
            "/sys/bus/pci/devices/0000:14:00.0/hwmon/hwmon3/temp2_input",
            "58000\n",
        )
        .unwrap();
        root.put("/sys/bus/pci/drivers/vfio-pci/0000:13:00.0", "")
            .unwrap();
        root.put("/sys/bus/pci/drivers/vfio-pci/new_id", "")
            .unwrap();
        root.put(
            "/sys/kernel/security/lockdown",
            "none [integrity] confidentiality\n",
        )
        .unwrap();
    });
    assert_eq!(
        tuning.pcie[&pci("0000:14:00.0")].temperature,
        Fact::Known(61_000)
    );
    assert_eq!(tuning.pcie[&pci("0000:13:00.0")].temperature, Fact::Absent);
    let held = BTreeMap::from([(pci("0000:13:00.0"), "vfio-pci".to_owned())]);
    assert_eq!(tuning.passed_through, Fact::Known(held));
    assert_eq!(tuning.lockdown, Fact::Known("integrity".to_owned()));
}

#[test]
fn the_namespace_mode_comes_with_what_set_it_and_what_keeps_it() {
    let tuning = read(ConfigSpace::Full, |root| {
        root.put("/sys/module/ib_core/parameters/netns_mode", "Y\n")
            .unwrap();
        root.put(
            "/etc/modprobe.d/z.conf",
            "# x\noptions ib_core netns_mode=0\n",
        )
        .unwrap();
        root.put(
            "/usr/lib/modprobe.d/a.conf",
            "options ib-core send_queue_size=9\noptions mlx5_core x=1\n",
        )
        .unwrap();
        root.put(
            "/usr/lib/modprobe.d/z.conf",
            "options ib_core netns_mode=1\n",
        )
        .unwrap();
        root.put("/run/netns/cni-1", "").unwrap();
    });
    let netns = &tuning.rdma_netns;
    assert_eq!(netns.shared, Fact::Known(true));
    let options: Vec<_> = netns
        .options
        .known()
        .unwrap()
        .iter()
        .map(|o| (o.file.as_str(), o.value.as_str()))
        .collect();
    assert_eq!(
        options,
        [
            ("/usr/lib/modprobe.d/a.conf", "send_queue_size=9"),
            ("/etc/modprobe.d/z.conf", "netns_mode=0")
        ]
    );
    assert_eq!(netns.namespaces, Fact::Known(vec!["cni-1".to_owned()]));
}

#[test]
fn containers_inherit_the_limit_of_their_runtime() {
    let limits = "Limit                     Soft Limit           Hard Limit           Units     \nMax locked memory         8388608              8388608              bytes     \n";
    let tuning = read(ConfigSpace::Full, |root| {
        root.put(
            "/sys/fs/cgroup/system.slice/containerd.service/cgroup.procs",
            "77\n78\n",
        )
        .unwrap();
        root.put("/proc/77/comm", "containerd-shim\n").unwrap();
        root.put("/proc/78/comm", "containerd\n").unwrap();
        root.put("/proc/78/limits", limits).unwrap();
        root.put(
            "/etc/systemd/system/containerd.service.d/m.conf",
            "[Service]\nLimitMEMLOCK=infinity\n",
        )
        .unwrap();
    });
    let runtime = &tuning.runtimes["containerd"];
    assert_eq!(
        (runtime.pid, &runtime.limit),
        (78, &Fact::Known(memlock::Limit::Bytes(8_388_608)))
    );
    assert_eq!(runtime.unit_files[0].value, "infinity");
    assert_eq!(tuning.runtimes.len(), 1);
}

#[test]
fn recorded_answers_stand_for_the_tools_and_their_absence_says_nothing() {
    let none = read(ConfigSpace::Full, |_| {});
    assert!(
        matches!(&none.firewall.input_chains, Fact::Unreadable(why) if why.contains("nft-ruleset.json was not recorded"))
    );
    assert_eq!(none.firewall.firewalld, Fact::Absent);
    let some = read(ConfigSpace::Full, |root| {
        root.put(
            "/run/gpurdma-recorded/nft-ruleset.json",
            r#"{"nftables": []}"#,
        )
        .unwrap();
        root.put(
            "/run/gpurdma-recorded/mstconfig/0000:14:00.0.txt",
            "Configurations: Default Current Next\n LINK_TYPE_P1 IB(1) IB(1) IB(1)\n",
        )
        .unwrap();
        root.put("/etc/ufw/ufw.conf", "ENABLED=yes\n").unwrap();
        root.put(
            "/etc/ufw/user.rules",
            "### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in comment=61\n",
        )
        .unwrap();
    });
    assert_eq!(some.firewall.input_chains, Fact::Known(Vec::new()));
    assert_eq!(
        some.firewall.ufw,
        Fact::Known(vec!["allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in".to_owned()])
    );
    assert!(some.firmware[&pci("0000:14:00.0")].known().is_some());
}

#[test]
fn a_virtual_function_has_the_generation_of_its_card() {
    let mut machine = described();
    let card = pci("0000:14:00.0");
    machine.nics[0].pci = Some(pci("0000:14:00.1"));
    machine.nics[0].physfn = Some(card);
    machine.nics[0].ids = Fact::Known((0x15b3, 0x101e));
    let of = |machine: &Machine| generation::read(machine)[&pci("0000:14:00.1")].clone();
    assert_eq!(of(&machine), Fact::Known("ConnectX-7".to_owned()));
    machine.nics[0].physfn = None;
    assert!(matches!(of(&machine), Fact::Unreadable(why) if why.contains("15b3:101e")));
}
