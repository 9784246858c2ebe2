use super::{XmlError, read, write};
use crate::distance::{Distance, DistanceSource};
use crate::fact::Fact;
use crate::machine::{Machine, PciFunction, PciKind, PciParent};
use crate::test_machines::{gpu, nic};

const FILE: &str = r#"<system version="1">
  <!-- two switches on one CPU, a second CPU, and a NIC that is no PCI device -->
  <cpu numaid="0">
    <pci busid="ffff:ff:01.0" class="0x060400">
      <pci busid="0001:00:00.0" class="0x030200"/>
      <pci busid="0101:00:00.0" class="0x020700"/>
      <pci busid="ffff:ff:02.0" class="0x060400">
        <pci busid="0102:00:00.0" class="0x020700"/>
      </pci>
    </pci>
    <pci busid="ffff:ff:03.0" class="0x060400">
      <pci busid="0103:00:00.0" class="0x020700"><nic><net name="mlx5_9"/></nic></pci>
    </pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="0104:00:00.0" class="0x020700"/>
  </cpu>
  <cpu numaid="-1">
    <pci busid="0105:00:00.0" class="0x020700"/>
  </cpu>
</system>
"#;

fn machine() -> Machine {
    let mut machine = Machine {
        gpus: vec![gpu(0, Some("0001:00:00.0".parse().unwrap()))],
        ..Machine::default()
    };
    for (index, pci) in [
        "0101:00:00.0",
        "0102:00:00.0",
        "0199:00:00.0",
        "0104:00:00.0",
        "0105:00:00.0",
        "0101:00:00.1",
    ]
    .iter()
    .enumerate()
    {
        machine.nics.push(nic(index, Some(pci.parse().unwrap())));
    }
    machine.nics[2].rdma = Some("mlx5_9".to_owned());
    machine
}

#[test]
fn distances_count_the_switches_of_the_file() {
    let stated = read(FILE, "/etc/topo.xml", &machine()).unwrap();
    let row: Vec<_> = stated.cells[&0].clone().into_iter().collect();
    // NIC2 is found by its name; NIC4 hangs on a CPU without a NUMA node; NIC5 is folded into function 0.
    let expected = [
        (0, Distance::Pix),
        (1, Distance::Pxb),
        (2, Distance::Node),
        (3, Distance::Sys),
        (5, Distance::Pix),
    ];
    assert_eq!(row, expected);
    assert_eq!(
        stated.source,
        DistanceSource::TopologyFile("/etc/topo.xml".to_owned())
    );
    assert_eq!(stated.nic_cells[&0][&1], Distance::Pxb);
}

fn error(from: &str, to: &str) -> XmlError {
    let text = FILE.replacen(from, to, 1);
    assert_ne!(text, FILE);
    read(&text, "/etc/topo.xml", &machine()).unwrap_err()
}

#[test]
fn what_nccl_refuses_is_refused_with_file_and_place() {
    let text = error("version=\"1\"", "version=\"2\"").to_string();
    assert!(
        text.contains("/etc/topo.xml") && text.contains("\"2\""),
        "{text}"
    );
    assert!(matches!(error("</system>", ""), XmlError::Xml { .. }));
    let text = error(" busid=\"0101:00:00.0\"", "").to_string();
    assert!(
        text.contains("<pci> at line 6") && text.contains("busid"),
        "{text}"
    );
    assert!(
        matches!(error("0102:00:00.0", "0101:00:00.0"), XmlError::Duplicate { busid, .. } if busid == "0101:00:00.0")
    );
    assert!(matches!(
        error("numaid", "numa"),
        XmlError::Attribute {
            attribute: "numaid",
            ..
        }
    ));
}

fn function(parent: PciParent, kind: PciKind) -> PciFunction {
    let class = if kind == PciKind::Gpu {
        Fact::Known(0x0003_0200)
    } else {
        Fact::Absent
    };
    PciFunction {
        parent,
        kind,
        numa: Fact::Known(0),
        class,
        vendor: Fact::Absent,
        device: Fact::Absent,
    }
}

#[test]
fn a_written_file_has_one_element_per_switch_and_nothing_that_nccl_cannot_parse() {
    let mut machine = machine();
    machine.nics.truncate(2);
    let at = |text: &str| text.parse().unwrap();
    let bridge = |text: &str| PciParent::Bridge(at(text));
    for (address, parent, kind) in [
        (
            "0000:00:01.0",
            PciParent::HostBridge("pci0000:00".to_owned()),
            PciKind::RootPort,
        ),
        (
            "0000:01:00.0",
            bridge("0000:00:01.0"),
            PciKind::SwitchUpstream,
        ),
        (
            "0000:02:00.0",
            bridge("0000:01:00.0"),
            PciKind::SwitchDownstream,
        ),
        ("0001:00:00.0", bridge("0000:02:00.0"), PciKind::Gpu),
        ("0101:00:00.0", bridge("0000:02:00.0"), PciKind::Nic),
    ] {
        machine
            .functions
            .insert(at(address), function(parent, kind));
    }
    let text = write(&machine);
    let expected = r#"<system version="1">
  <cpu numaid="-1">
    <pci busid="0102:00:00.0"/>
  </cpu>
  <cpu numaid="0">
    <pci busid="0000:01:00.0">
      <pci busid="0001:00:00.0" class="0x030200"/>
      <pci busid="0101:00:00.0"/>
    </pci>
  </cpu>
</system>
"#;
    assert_eq!(text, expected);
    assert!(!text.contains('\t') && !text.contains("<?"));
}

#[test]
fn bridges_in_a_circle_are_written_once() {
    let mut machine = machine();
    let at = |text: &str| text.parse().unwrap();
    let switch = |above: &str| function(PciParent::Bridge(at(above)), PciKind::SwitchUpstream);
    machine
        .functions
        .insert(at("0000:01:00.0"), switch("0000:02:00.0"));
    machine
        .functions
        .insert(at("0000:02:00.0"), switch("0000:01:00.0"));
    machine.functions.insert(
        at("0001:00:00.0"),
        function(PciParent::Bridge(at("0000:01:00.0")), PciKind::Gpu),
    );
    machine.functions.insert(
        at("0101:00:00.0"),
        function(PciParent::Bridge(at("0000:02:00.0")), PciKind::Nic),
    );
    assert_eq!(write(&machine).matches("0000:01:00.0").count(), 1);
}
