use std::error::Error;

use super::*;
use crate::distance::{Distance, DistanceSource};
use crate::pairing::pair;
use crate::policy::{ResourcePolicy, UnknownDistance};

const CLOUD: &str = r#"<!-- a cloud's file -->
<system version="1">
  <cpu numaid="0">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0001:00:00.0" class="0x030200"/>
      <pci busid="0101:00:00.0" class="0x020700" vendor="0x15b3" device="0x1021"/>
    </pci>
    <nic><net name="eth0"/></nic>
  </cpu>
  <cpu numaid="-1">
    <pci busid="0002:00:00.0" class="0x030200" vendor="0x10de" device="0x2330">
      <gpu dev="1"><nvlink target="0001:00:00.0" count="18" tclass="0x030200"/></gpu>
    </pci>
    <pci busid="0003:00:00.0" link_speed="&lt;/system&gt;" link_width="16"/>
    <pci busid="0102:00:00.0" class="0x020000">
      <nic><net name="mlx5_1" speed="200000" port="1"/><net name="mlx5_2" speed="0" port="2"/></nic>
    </pci>
  </cpu>
</system>
"#;

fn described(text: &str) -> Machine {
    machine(text, "cloud.xml", &BTreeSet::from([0x10de])).unwrap()
}

fn refused(text: &str) -> String {
    let error = machine(text, "cloud.xml", &BTreeSet::new()).unwrap_err();
    let cause = error.source().map_or_else(String::new, ToString::to_string);
    format!("{error} {cause}")
}

#[test]
fn a_topology_file_describes_its_machine() {
    let machine = described(CLOUD);
    let gpus: Vec<_> = machine.gpus.iter().filter_map(|gpu| gpu.pci).collect();
    let gpus: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    assert_eq!(gpus, ["0001:00:00.0", "0002:00:00.0"]);
    assert_eq!(machine.gpus[1].nvlinks[&0], 18);
    let nics: Vec<String> = machine.nics.iter().map(crate::machine::Nic::name).collect();
    assert_eq!(nics, ["NIC0", "mlx5_1", "mlx5_2"]);
    let rates: Vec<_> = machine
        .nics
        .iter()
        .map(|nic| nic.ports[0].rate_mbps.known())
        .collect();
    assert_eq!(rates, [None, Some(&200_000), None]);
    let paths = machine.paths();
    let file = DistanceSource::TopologyFile("cloud.xml".to_owned());
    let path = paths.gpu_nic(0, 0).unwrap();
    assert_eq!((path.distance, &path.source), (Distance::Pix, &file));
    assert_eq!(paths.distance(0, 1), Distance::Unknown, "numaid -1");
    assert_eq!(
        machine.tree_file.unwrap().links.len(),
        1,
        "a link that is none is not taken"
    );
    let said = |part: &str| machine.notes.iter().any(|note| note.contains(part));
    assert!(said("eth0 is no PCI function") && said("1 functions have no class"));
}

#[test]
fn what_only_a_file_tells_is_refused_where_the_policy_refuses_it() {
    let machine = described(CLOUD);
    let pairs = |unknown_distance| {
        let policy = ResourcePolicy {
            unknown_distance,
            ..ResourcePolicy::default()
        };
        pair(&machine, &machine.paths(), &policy).pairs
    };
    let believed = pairs(UnknownDistance::TopologyFile);
    assert!(
        believed[0]
            .reason
            .ends_with("by the topology file cloud.xml"),
        "{believed:?}"
    );
    assert!(pairs(UnknownDistance::Refuse).is_empty());
}

#[test]
fn rccls_version_describes_a_machine_though_nccl_would_refuse_the_file() {
    let rccl = CLOUD.replace("version=\"1\"", "version=\"2\"");
    assert_eq!(described(&rccl), described(CLOUD));
    assert!(refused(&CLOUD.replace("version=\"1\"", "version=\"3\"")).contains("version"));
}

#[test]
fn texts_that_describe_nothing_are_refused_with_their_place() {
    assert!(refused("- no machine").contains("machine file"));
    assert!(refused("<system").contains("no well-formed XML"));
    assert!(refused("<graph/>").contains("<graph"));
    let bus = refused(&CLOUD.replacen("ffff:ff:01.0", "switch 1", 1));
    assert!(
        bus.contains("<pci> at line 4") && bus.contains("`switch 1` is no PCI address"),
        "{bus}"
    );
    let twice = refused(&CLOUD.replacen("0002:00:00.0", "0001:00:00.0", 1));
    assert!(twice.contains("0001:00:00.0 occurs twice"), "{twice}");
}
