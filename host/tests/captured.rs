//! Captured `/sys` trees of real machines (hwloc's test suite). They are others' data and no part of this repository:
//! the tests look for them in `GPURDMA_SYSFS_TREES`, else in `../shared/machines/sysfs` beside the workspace.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use host::capture::capture;
use host::facts::facts;
use host::machine::{Options, machine};
use host::root::Root;
use topology::distance::Distance;
use topology::fact::Fact;
use topology::file::{MachineFile, parse};
use topology::machine::{LinkLayer, PciKind, PciParent, PortState};
use topology::pairing::pair;
use topology::policy::ResourcePolicy;

/// Trees are thousands of small files: where there is a tmpfs, that takes a tenth of the time.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// The unpacked tree of an archive; `None`, said on the way, where the archives were not laid.
fn tree(archive: &str) -> Option<(tempfile::TempDir, Root)> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/machines/sysfs");
    let folder = std::env::var_os("GPURDMA_SYSFS_TREES").map_or(beside, PathBuf::from);
    let archive = folder.join(format!("{archive}.tar.bz2"));
    if !archive.exists() {
        println!("not laid: {}", archive.display());
        return None;
    }
    let directory = scratch();
    let status = Command::new("tar")
        .arg("-xjf")
        .arg(&archive)
        .arg("-C")
        .arg(directory.path())
        .status()
        .unwrap();
    assert!(status.success(), "tar -xjf {}", archive.display());
    let top = std::fs::read_dir(directory.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    Some((directory, Root::new(top)))
}

#[test]
fn a_machine_with_a_connectx_3_is_read_whole() {
    let Some((_keep, root)) = tree("32em64t-2n8c+dax+nvme+mic+dimms") else {
        return;
    };
    let machine = machine(&root, &Options::default());
    assert_eq!(machine.functions.len(), 137);
    assert!(machine.gpus.is_empty());
    let names: Vec<_> = machine
        .nics
        .iter()
        .map(topology::machine::Nic::name)
        .collect();
    assert_eq!(names, ["mlx4_0"]);
    // The capture has the link of a Xeon Phi's device and not the device.
    assert_eq!(machine.notes.len(), 1, "{:?}", machine.notes);
    assert!(machine.notes[0].contains("scif0"));
    let nic = &machine.nics[0];
    assert_eq!(
        (nic.pci.unwrap().to_string().as_str(), &nic.numa),
        ("0000:82:00.0", &Fact::Known(1))
    );
    let port = &nic.ports[0];
    assert_eq!(
        (&port.state, &port.link_layer),
        (
            &Fact::Known(PortState::Active),
            &Fact::Known(LinkLayer::InfiniBand)
        )
    );
    assert_eq!(port.rate_mbps, Fact::Known(56_000));
    assert_eq!(machine.functions[&nic.pci.unwrap()].kind, PciKind::Nic);
}

#[test]
fn a_box_of_two_switches_is_read_whole() {
    let Some((_keep, root)) = tree("32intel64-2p8co2t+8ve") else {
        return;
    };
    let machine = machine(&root, &Options::default());
    assert_eq!(
        machine.functions.len(),
        28,
        "as many as the capture has links"
    );
    let count = |kind| {
        machine
            .functions
            .values()
            .filter(|function| function.kind == kind)
            .count()
    };
    let kinds = [
        PciKind::RootPort,
        PciKind::SwitchUpstream,
        PciKind::SwitchDownstream,
    ]
    .map(count);
    assert_eq!(kinds, [3, 3, 10]);
    assert!(
        machine.nics.is_empty(),
        "its RDMA devices were not captured"
    );
}

#[test]
fn a_five_digit_domain_is_read() {
    let Some((_keep, root)) = tree("2pa-pcidomain32bits") else {
        return;
    };
    let machine = machine(&root, &Options::default());
    assert_eq!(machine.functions.len(), 9);
    let far = &machine.functions[&"10000:00:04.0".parse().unwrap()];
    assert_eq!(
        (&far.parent, &far.numa),
        (
            &PciParent::HostBridge("pci10000:00".to_owned()),
            &Fact::Absent
        )
    );
    assert_eq!(
        facts(&root, &Options::default(), None).hypervisor.fact,
        Fact::Known(true)
    );
}

#[test]
fn gpus_that_only_the_driver_shows_are_notes() {
    let Some((_keep, root)) = tree("nvidiagpunumanodes") else {
        return;
    };
    let machine = machine(&root, &Options::default());
    assert!(machine.gpus.is_empty(), "no vendor was captured");
    assert_eq!(machine.functions.len(), 6);
    assert!(
        machine
            .functions
            .values()
            .all(|function| function.parent == PciParent::Unknown)
    );
    assert_eq!(
        machine
            .notes
            .iter()
            .filter(|note| note.contains("the driver has a GPU at"))
            .count(),
        6
    );
}

#[test]
fn a_real_machine_is_captured_and_read_again() {
    for archive in [
        "32em64t-2n8c+dax+nvme+mic+dimms",
        "32intel64-2p8co2t+8ve",
        "2pa-pcidomain32bits",
    ] {
        let Some((_keep, root)) = tree(archive) else {
            return;
        };
        let copy = scratch();
        let copied = Root::new(copy.path());
        capture(&root, &copied).unwrap();
        let (before, after) = (
            machine(&root, &Options::default()),
            machine(&copied, &Options::default()),
        );
        assert_eq!(after.functions, before.functions, "{archive}");
        assert_eq!(after.nics, before.nics, "{archive}");
    }
}

/// The machine file that was made of a capture.
fn file(name: &str) -> MachineFile {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topology/tests/machines");
    parse(&std::fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap()).unwrap()
}

/// The golden of a capture is its machine file: every function with its place, NUMA node and ids.
#[test]
fn every_function_is_read_as_the_machine_file_tells() {
    for (archive, name, unlinked) in [
        ("32em64t-2n8c+dax+nvme+mic+dimms", "hwloc-snb-mlx4-phi", 0),
        ("32intel64-2p8co2t+8ve", "nec-aurora-a300-8-ve", 1),
        ("2pa-pcidomain32bits", "hwloc-pcidomain-32bit", 0),
    ] {
        let Some((_keep, root)) = tree(archive) else {
            return;
        };
        let (read, told) = (machine(&root, &Options::default()), file(name).machine);
        let mut missing = 0;
        for (address, told) in &told.functions {
            let Some(function) = read.functions.get(address) else {
                missing += 1;
                continue;
            };
            let place = format!("{archive}: {address}");
            assert_eq!(function.parent, told.parent, "{place}");
            for (read, told) in [(&function.numa, &told.numa), (&function.class, &told.class)] {
                assert!(
                    told.known().is_none() || read == told,
                    "{place}: {read:?} {told:?}"
                );
            }
        }
        assert_eq!(missing, unlinked, "{archive}");
        assert_eq!(read.functions.len() + missing, told.functions.len());
    }
}

/// The captured box of two switches with GPUs in the place of its accelerators, and the RDMA devices of its two NICs.
#[test]
fn gpus_in_a_captured_box_get_the_nic_of_their_switch() {
    let Some((_keep, root)) = tree("32intel64-2p8co2t+8ve") else {
        return;
    };
    let place = |pci: &str| {
        root.resolve(&format!("/sys/bus/pci/devices/{pci}"))
            .unwrap()
    };
    let at = |path: &str| root.path().join(path.trim_start_matches('/'));
    let accelerators = machine(&root, &Options::default()).functions;
    let accelerators = accelerators
        .iter()
        .filter(|(_, function)| function.vendor == Fact::Known(0x1bcf));
    let mut gpus = 0;
    for (pci, _) in accelerators {
        for (name, value) in [
            ("vendor", "0x10de"),
            ("device", "0x20b0"),
            ("class", "0x030200"),
        ] {
            let path = at(&format!("{}/{name}", place(&pci.to_string())));
            std::fs::remove_file(&path).unwrap();
            std::fs::write(path, format!("{value}\n")).unwrap();
        }
        gpus += 1;
    }
    assert_eq!(gpus, 8);
    std::fs::create_dir_all(at("/sys/class/infiniband")).unwrap();
    for (name, pci) in [("mlx5_0", "0000:1a:00.0"), ("mlx5_1", "0000:3e:00.0")] {
        let device = format!("{}/infiniband/{name}", place(pci));
        std::fs::create_dir_all(at(&device)).unwrap();
        std::os::unix::fs::symlink("../..", at(&format!("{device}/device"))).unwrap();
        std::os::unix::fs::symlink(&device, at(&format!("/sys/class/infiniband/{name}"))).unwrap();
    }
    let machine = machine(&root, &Options::default());
    let pairing = pair(&machine, &machine.paths(), &ResourcePolicy::default());
    let nics: Vec<usize> = pairing.pairs.iter().map(|pair| pair.nics[0]).collect();
    assert_eq!(nics, [0, 0, 0, 0, 1, 1, 1, 1]);
    for pair in &pairing.pairs {
        assert_eq!((pair.distance, pair.shared), (Distance::Pix, true));
    }
    assert_eq!(
        machine.paths().distance(0, 1),
        Distance::Node,
        "the other switch"
    );
}
