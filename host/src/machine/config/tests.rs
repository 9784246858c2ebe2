use super::{PortType, port_type};

fn space(length: usize, capabilities: &[(usize, [u8; 4])]) -> Vec<u8> {
    let mut config = vec![0; length];
    config[0x06] = 0x10;
    config[0x34] = u8::try_from(capabilities[0].0).unwrap();
    for (at, bytes) in capabilities {
        config[*at..at + 4].copy_from_slice(bytes);
    }
    config
}

#[test]
fn the_capability_is_found_behind_others() {
    let config = space(
        256,
        &[
            (0x40, [0x01, 0x60, 3, 0]),
            (0x60, [0x05, 0xe0, 0, 0]),
            (0xe0, [0x10, 0, 0x62, 0]),
        ],
    );
    assert_eq!(port_type(&config), PortType::Express(6));
}

#[test]
fn what_is_not_there_is_told_from_what_cannot_be_seen() {
    let mut config = space(256, &[(0x40, [0x10, 0, 0x42, 0])]);
    assert_eq!(port_type(&config[..64]), PortType::Hidden);
    assert_eq!(port_type(&[]), PortType::Hidden);
    config[0x06] = 0;
    assert_eq!(port_type(&config), PortType::Conventional);
}

#[test]
fn a_list_that_is_garbage_ends() {
    assert_eq!(
        port_type(&space(256, &[(0x40, [0x01, 0x40, 0, 0])])),
        PortType::Conventional
    );
    assert_eq!(
        port_type(&space(256, &[(0x40, [0x01, 0x08, 0, 0])])),
        PortType::Conventional
    );
    assert_eq!(port_type(&vec![0xff; 256]), PortType::Conventional);
    assert_eq!(
        port_type(&space(66, &[(0x3c, [0; 4])])),
        PortType::Conventional
    );
}

#[cfg(feature = "fixture")]
#[test]
fn a_composed_space_reads_back() {
    for kind in [0, 4, 5, 6, 7] {
        let config = super::compose(&super::Composed {
            vendor: 0x10de,
            device: 0x2330,
            class: 0x06_04_00,
            port_type: kind,
            acs_control: 0,
        });
        assert_eq!(
            (config.len(), port_type(&config)),
            (4096, PortType::Express(kind))
        );
    }
}
