use super::{NodeFile, NodeFileError, NodeResource, SCHEMA, devices};
use crate::distance::Distance;
use crate::fact::Fact;
use crate::machine::Machine;
use crate::partition::partition;
use crate::policy::{ResourceKind, ResourcePolicy};
use crate::test_machines::{gpu, nic};

fn machine() -> Machine {
    let mut machine = Machine::default();
    for index in 0..2usize {
        let mut gpu = gpu(index, Some(format!("000{index}:01:00.0").parse().unwrap()));
        gpu.uuid = Fact::Known(format!("GPU-{index}"));
        gpu.numa = Fact::Known(u32::try_from(index).unwrap());
        gpu.nvlinks.insert(1 - index, 18);
        machine.gpus.push(gpu);
        let mut nic = nic(index, Some(format!("000{index}:02:00.0").parse().unwrap()));
        nic.numa = Fact::Known(u32::try_from(index).unwrap());
        nic.uverbs = Fact::Known(u32::try_from(7 - index).unwrap());
        machine.nics.push(nic);
    }
    machine
}

fn file() -> NodeFile {
    let machine = machine();
    let paths = machine.paths();
    let policy = ResourcePolicy {
        max_distance: Distance::Node,
        ..ResourcePolicy::default()
    };
    let partition = partition(&machine, &paths, &[policy]).unwrap();
    let resource = NodeResource {
        name: "rdma/gpudirect".to_owned(),
        kind: ResourceKind::Pair,
        hold_down_seconds: 30,
        stable_up_seconds: 60,
        unhealthy_on_nic_down: true,
        nic_lists: Vec::new(),
        envs: Vec::new(),
        devices: devices(&machine, &paths, &partition.resources[0]),
    };
    NodeFile {
        schema: SCHEMA.to_owned(),
        boot_id: "boot".to_owned(),
        node_uid: "node".to_owned(),
        generation: 3,
        install_hash: "hash".to_owned(),
        resources: vec![resource],
    }
}

#[test]
fn devices_have_parts_numa_nodes_links_and_reasons() {
    let file = file();
    let device = &file.resources[0].devices[1];
    assert_eq!(
        (device.id.as_str(), device.numa_nodes.as_slice()),
        ("GPU-1", &[1][..])
    );
    let nic = &device.nics[0];
    assert_eq!(
        (nic.rdma.as_str(), nic.distance, nic.ports.as_slice()),
        ("mlx5_1", Some(Distance::Node), &[1][..])
    );
    assert_eq!(
        (nic.pci.as_deref(), nic.uverbs),
        (Some("0001:02:00.0"), Some(6))
    );
    assert_eq!(device.links[0].nvlinks, 18);
    assert_eq!(
        (device.links[0].distance, device.links[0].same_numa),
        (Distance::Sys, Some(false))
    );
    assert!(
        !device.admitted && device.pair_reason.contains("mlx5_1 is the closest"),
        "{}",
        device.pair_reason
    );
}

#[test]
fn what_is_written_reads_back_and_its_bytes_do_not_depend_on_order() {
    let file = file();
    let text = file.to_json();
    assert_eq!(NodeFile::parse(&text).unwrap(), file);
    let mut shuffled = file;
    shuffled.resources[0].devices.reverse();
    assert_eq!(shuffled.to_json(), text);
}

fn with(from: &str, to: &str) -> Result<NodeFile, NodeFileError> {
    let text = file().to_json();
    let changed = text.replacen(from, to, 1);
    assert_ne!(changed, text);
    NodeFile::parse(&changed)
}

#[test]
fn an_unknown_field_is_refused_at_the_own_minor_and_ignored_at_a_higher_one() {
    let error = with("\"rail\": null", "\"rail\": null, \"colour\": 1").unwrap_err();
    assert!(
        matches!(&error, NodeFileError::UnknownField { path, .. } if path == "resources[0].devices[0].nics[0].colour"),
        "{error}"
    );
    assert_eq!(
        with("\"schema\": \"1.2\"", "\"schema\": \"1.3\", \"colour\": 1")
            .unwrap()
            .schema,
        "1.3"
    );
}

/// An agent that was upgraded reads the file of the one before.
#[test]
fn a_file_of_a_lower_minor_lacks_only_what_came_later() {
    let old = |text: &str| {
        let later = |line: &&str| line.contains("\"uverbs\"") || line.contains("\"nicLists\"");
        let lines = text.lines().filter(|line| !later(line));
        let lines: Vec<&str> = lines.collect();
        lines.join("\n").replace("\"1.2\"", "\"1.0\"")
    };
    let text = file().to_json();
    let read = NodeFile::parse(&old(&text)).unwrap();
    assert_eq!(read.resources[0].devices[0].nics[0].uverbs, None);
    let missing = NodeFile::parse(&old(&text).replace("\"1.0\"", "\"1.1\"")).unwrap_err();
    assert!(
        matches!(&missing, NodeFileError::MissingField { path } if path.ends_with("nics[0].uverbs")),
        "{missing}"
    );
    let rail = old(&text).replacen("\"rail\": null", "\"pci\": null", 1);
    assert!(NodeFile::parse(&rail).is_err(), "it had a rail at 1.0");
}

#[test]
fn another_major_is_refused() {
    assert!(
        matches!(with("\"1.2\"", "\"2.0\"").unwrap_err(), NodeFileError::Major { found } if found == "2.0")
    );
}

#[test]
fn a_schema_that_cannot_be_read_is_refused_with_the_remedy() {
    for (from, to) in [
        ("\"1.2\"", "\"one\""),
        ("\"1.2\"", "1"),
        ("\"schema\": \"1.2\",", ""),
    ] {
        let text = with(from, to).unwrap_err().to_string();
        assert!(text.contains("MAJOR.MINOR"), "{text}");
    }
}

#[test]
fn a_missing_field_is_named_even_an_optional_one() {
    let error = with("\"rail\": null", "\"unused\": null").unwrap_err();
    assert!(
        matches!(&error, NodeFileError::MissingField { path } if path.ends_with("nics[0].rail")),
        "{error}"
    );
    let error = with("\"bootId\": \"boot\",", "").unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("bootId"), "{source}");
}

#[test]
fn what_is_no_json_is_refused() {
    assert!(matches!(
        NodeFile::parse("{").unwrap_err(),
        NodeFileError::Json(_)
    ));
    assert!(matches!(
        NodeFile::parse("[]").unwrap_err(),
        NodeFileError::Schema { .. }
    ));
}

#[test]
fn shared_nics_have_no_links() {
    let machine = machine();
    let paths = machine.paths();
    let policy = ResourcePolicy {
        kind: ResourceKind::SharedNic,
        replicas: 3,
        ..ResourcePolicy::default()
    };
    let partition = partition(&machine, &paths, &[policy]).unwrap();
    let devices = devices(&machine, &paths, &partition.resources[0]);
    assert_eq!(devices.len(), 6);
    assert!(
        devices
            .iter()
            .all(|device| device.links.is_empty() && device.shared && device.gpu.is_none())
    );
}
