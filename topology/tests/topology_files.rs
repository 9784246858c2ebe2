//! NCCL topology files that clouds publish, read for the machines that they are meant for, and files of our own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

use std::collections::BTreeMap;

use topology::distance::Distance;
use topology::nccl_xml::{read, write};
use topology::pairing::pair;
use topology::policy::ResourcePolicy;

use support::{file, files, xml};

mod support;

#[test]
fn azures_file_turns_a_four_way_tie_into_eight_pairs() {
    let mut guest = file("azure-ndv5-h100-in-guest").machine;
    let policy = ResourcePolicy::default();
    assert!(pair(&guest, &guest.paths(), &policy).pairs.is_empty());
    guest.stated = Some(
        read(
            &xml("azure-ndv5-topo.xml"),
            "/opt/microsoft/ndv5-topo.xml",
            &guest,
        )
        .unwrap(),
    );
    let pairing = pair(&guest, &guest.paths(), &policy);
    let nics: Vec<usize> = pairing.pairs.iter().map(|pair| pair.nics[0]).collect();
    assert_eq!(nics, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(
        pairing
            .pairs
            .iter()
            .all(|pair| pair.reason.contains("/opt/microsoft/ndv5-topo.xml"))
    );
}

/// What a topology file can tell of a tree: it has no host bridges.
fn through_nccl(distance: Distance) -> Distance {
    if distance == Distance::Phb {
        Distance::Node
    } else {
        distance
    }
}

#[test]
fn what_is_written_reads_back_with_the_same_distances() {
    let mut compared = 0;
    for file in files()
        .iter()
        .filter(|file| !file.machine.functions.is_empty())
    {
        let paths = file.machine.paths();
        for (gpu, row) in read(&write(&file.machine), "host.xml", &file.machine)
            .unwrap()
            .cells
        {
            for (nic, read) in row {
                let computed = paths.gpu_nic(gpu, nic).unwrap();
                if computed.source == topology::distance::DistanceSource::Sysfs {
                    assert_eq!(
                        read,
                        through_nccl(computed.distance),
                        "{}: GPU{gpu} NIC{nic}",
                        file.name
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "{compared} cells compared");
}

#[test]
fn a_clouds_tree_that_is_written_and_read_states_the_same() {
    for file in files().iter().filter(|file| file.topology_file.is_some()) {
        let mut whole = file.machine.clone();
        whole.functions = file.topology_file.clone().unwrap();
        let read = read(&write(&whole), "host.xml", &whole).unwrap();
        let given = &file.machine.stated.as_ref().unwrap().cells;
        let given: BTreeMap<_, _> = given
            .iter()
            .filter(|(_, row)| !row.is_empty())
            .map(|(gpu, row)| (*gpu, row.clone()))
            .collect();
        assert_eq!(read.cells, given, "{}", file.name);
    }
}

#[test]
fn nothing_that_nccls_parser_refuses_is_written() {
    for file in files() {
        let text = write(&file.machine);
        assert!(
            text.starts_with("<system version=\"1\">\n"),
            "{}",
            file.name
        );
        assert!(
            !text.contains('\t') && text.lines().all(|line| line.len() < 254),
            "{}",
            file.name
        );
        assert_eq!(text, write(&file.machine));
    }
}

/// Distances of a topology file, by GPU and NIC index, for the GPUs that have any.
fn stated(machine: &topology::machine::Machine) -> BTreeMap<usize, BTreeMap<usize, Distance>> {
    let cells = machine.stated.as_ref().unwrap().cells.clone();
    cells
        .into_iter()
        .filter(|(_, row)| !row.is_empty())
        .collect()
}

/// A guest shows each device alone; what is written for it has switches that tell what its cloud's file tells.
#[test]
fn a_guests_file_tells_what_its_clouds_file_tells() {
    let mut guests = 0;
    for file in files().iter().filter(|file| file.topology_file.is_some()) {
        let text = write(&file.machine);
        let read = read(&text, "host.xml", &file.machine).unwrap();
        assert_eq!(read.cells, stated(&file.machine), "{}", file.name);
        guests += 1;
    }
    assert!(guests > 5, "{guests} guests");
}

/// Switches of a guest get bus ids that no function has, and the attributes that NCCL cannot read from `/sys` there.
#[test]
fn invented_switches_have_free_names_and_a_link() {
    let mut guest = file("azure-ndv5-h100").machine;
    let taken = "ffff:ff:01.0".parse().unwrap();
    let alone = guest.functions.values().next().unwrap().clone();
    guest.functions.insert(taken, alone);
    let text = write(&guest);
    assert!(!text.contains("ffff:ff:01.0"), "{text}");
    let link = "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"";
    let switches = text.lines().filter(|line| line.contains("ffff:ff:"));
    let with_link = switches
        .clone()
        .filter(|line| line.contains(link) && line.contains("0x060400"));
    assert_eq!((switches.count(), with_link.count()), (8, 8), "{text}");
}

/// A printed matrix is no topology file, and NODE or SYS is no switch.
#[test]
fn nothing_is_invented_without_a_topology_file() {
    for name in [
        "lenovo-sr680a-v3-8gpu-11nic",
        "azure-ndv2-v100",
        "azure-ndv5-h100-in-guest",
    ] {
        assert!(!write(&file(name).machine).contains("ffff:ff:"), "{name}");
    }
}

/// What `src/graph/xml.cc` asks of a file: version 1, a `numaid` for each `cpu`, a bus id of twelve signs for each `pci`, no
/// more than 256 elements, and none of those that NCCL adds at run time.
#[test]
fn a_written_file_has_what_nccl_needs_of_each_element() {
    for file in files() {
        let text = write(&file.machine);
        let document = roxmltree::Document::parse(&text).unwrap();
        let elements: Vec<_> = document
            .descendants()
            .filter(roxmltree::Node::is_element)
            .collect();
        assert!(elements.len() <= 256, "{}: {}", file.name, elements.len());
        for element in elements {
            let has = |name: &str| element.attribute(name).unwrap_or_default();
            assert!(element.attributes().len() <= 16, "{}", file.name);
            match element.tag_name().name() {
                "system" => assert_eq!(has("version"), "1"),
                "cpu" => assert!(has("numaid").parse::<i64>().is_ok(), "{}", file.name),
                "pci" => {
                    let pci: topology::pci::PciAddress = has("busid").parse().unwrap();
                    let plain = has("busid").len() == 12 || pci.domain > 0xffff;
                    assert!(plain && has("busid") == pci.to_string(), "{}", file.name);
                }
                other => panic!("{}: <{other}> is NCCL's to add", file.name),
            }
        }
    }
}
