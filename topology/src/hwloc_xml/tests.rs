use super::*;
use crate::distance::Distance;

/// Two host bridges on two packages; a NIC behind a switch beside a GPU, a GPU elsewhere, and what is neither.
const EXPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="3.0">
  <object type="Machine" nodeset="0x00000003">
    <object type="Package" nodeset="0x00000001">
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[10-1f]">
        <object type="Bridge" bridge_type="1-1" pci_busid="0000:10:01.0" pci_type="0604 [8086:2030] [0:0] 04 00">
          <object type="Bridge" bridge_type="1-1" pci_busid="0000:11:00.0" pci_type="0604 [1000:c010] [0:0] b0 00">
            <object type="Bridge" bridge_type="1-1" pci_busid="0000:12:00.0" pci_type="0604 [1000:c010] [0:0] b0 00">
              <object type="PCIDev" pci_busid="0000:13:00.0" pci_type="0302 [10de:2330] [10de:1] a1 00">
                <object type="OSDev" name="nvml0" osdev_type="12"/>
              </object>
            </object>
            <object type="Bridge" bridge_type="1-1" pci_busid="0000:12:01.0" pci_type="0604 [1000:c010] [0:0] b0 00">
              <object type="PCIDev" pci_busid="0000:14:00.0" pci_type="0207 [15b3:1021] [15b3:1] 00 00">
                <object type="OSDev" name="ib0" osdev_type="16"/>
                <object type="OSDev" name="mlx5_0" osdev_type="48"/>
              </object>
            </object>
          </object>
        </object>
        <object type="PCIDev" pci_busid="0000:10:1f.0" pci_type="0300 [1a03:2000] [0:0] 30 00"/>
      </object>
    </object>
    <object type="Package" nodeset="0x00000002">
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[80-8f]">
        <object type="PCIDev" pci_busid="0000:80:02.0" pci_type="0302 [10de:2330] [10de:1] a1 00"/>
      </object>
    </object>
  </object>
</topology>
"#;

fn read(text: &str) -> Result<Machine, XmlError> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).unwrap();
    describe(&document, "host.xml", &BTreeSet::from([0x10de]))
}

#[test]
fn an_export_has_the_tree_the_numa_nodes_and_the_names() {
    let machine = read(EXPORT).unwrap();
    assert_eq!((machine.gpus.len(), machine.nics.len()), (2, 1));
    assert_eq!(machine.nics[0].name(), "mlx5_0");
    assert_eq!(machine.nics[0].ids, Fact::Known((0x15b3, 0x1021)));
    let numa: Vec<_> = machine
        .gpus
        .iter()
        .map(|gpu| gpu.numa.known().copied())
        .collect();
    assert_eq!(numa, [Some(0), Some(1)]);
    let paths = machine.paths();
    let path = paths.gpu_nic(0, 0).unwrap();
    assert_eq!((path.distance, path.hops), (Distance::Pix, Some(3)));
    assert_eq!(paths.distance(1, 0), Distance::Sys);
    let far = &machine.functions[&"0000:80:02.0".parse().unwrap()];
    assert_eq!(far.parent, PciParent::HostBridge("pci0000:80".to_owned()));
}

#[test]
fn types_of_devices_were_numbers_before_version_3() {
    let old = |number: &str| {
        EXPORT
            .replace("version=\"3.0\"", "version=\"2.0\"")
            .replace("\"48\"", number)
    };
    assert_eq!(read(&old("\"3\"")).unwrap().nics.len(), 1);
    assert!(read(&old("\"2\"")).unwrap().nics.is_empty());
}

#[test]
fn a_function_that_occurs_twice_or_has_no_address_is_refused() {
    let twice = read(&EXPORT.replace("0000:14:00.0", "0000:13:00.0")).unwrap_err();
    assert!(matches!(twice, XmlError::Duplicate { .. }), "{twice}");
    let none = read(&EXPORT.replace("PCIDev\" pci_busid", "PCIDev\" busid")).unwrap_err();
    assert!(matches!(none, XmlError::Attribute { .. }), "{none}");
}

#[test]
fn a_set_of_one_numa_node_tells_it() {
    let sets = [
        ("0x00000001", Some(0)),
        ("0x1,0x0", Some(32)),
        ("0x4,,", Some(66)),
        ("0x00000003", None),
        ("0x1,0x1", None),
        ("", None),
        ("0xf...f", None),
    ];
    for (set, node) in sets {
        assert_eq!(only_node(set), node, "{set}");
    }
}
