use super::*;

const BRIDGE: u32 = 0x0006_0400;
const NVME: u32 = 0x0001_0802;

/// The first 256 bytes of a function whose PCI Express capability names `port_type`.
fn config(port_type: u8) -> Vec<u8> {
    let mut config = vec![0; 256];
    (config[0x06], config[0x34], config[0x40]) = (0x10, 0x40, 0x10);
    config[0x42] = port_type << 4 | 0x02;
    config
}

fn kind_of(config: &[u8], class: Option<u32>) -> PciKind {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config"), config).unwrap();
    kind(&Root::new(dir.path()), "/", class)
}

#[test]
fn only_bridges_are_asked_what_they_are() {
    assert_eq!(kind_of(&config(4), Some(BRIDGE)), PciKind::RootPort);
    assert_eq!(kind_of(&config(4), None), PciKind::RootPort);
    assert_eq!(kind_of(&config(4), Some(NVME)), PciKind::Other);
}

/// A file longer than anything is read as a whole shows that the end is not reached for.
#[test]
fn no_more_than_the_capability_list_is_read() {
    let mut long = config(6);
    long.resize(2 << 20, 0xff);
    assert_eq!(kind_of(&long, Some(BRIDGE)), PciKind::SwitchDownstream);
}
