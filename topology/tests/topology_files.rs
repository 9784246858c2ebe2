//! NCCL topology files that clouds publish, read for the machines that they are meant for, and files of our own.

use std::collections::BTreeMap;

use topology::distance::Distance;
use topology::file::MachineFile;
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

/// A machine file's distances were derived from the published file by other means.
#[test]
fn published_files_read_as_the_machine_files_state() {
    let pairs = [
        ("azure-ndv5-topo.xml", "azure-ndv5-h100"),
        ("aws-p4d-24xl-topo.xml", "aws-p4d-a100"),
        ("oci-H100-topology.xml", "oci-bm-gpu-h100-8"),
    ];
    for (text, name) in pairs {
        let MachineFile {
            machine, closest, ..
        } = file(name);
        let stated = read(&xml(text), text, &machine).unwrap();
        for (gpu, closest) in closest {
            let best = stated.cells[&gpu].values().min();
            assert_eq!(best, closest.distance.as_ref(), "{name}: GPU{gpu}");
            let nics: Vec<String> = machine
                .nics
                .iter()
                .filter(|nic| stated.cells[&gpu].get(&nic.index) == best)
                .map(topology::machine::Nic::name)
                .collect();
            assert_eq!(nics, closest.nics, "{name}: GPU{gpu}");
        }
    }
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
