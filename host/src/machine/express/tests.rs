use super::*;

/// A space with a PCI Express capability at 0x60 and extended capabilities at 0x100 and 0x150.
fn space() -> Vec<u8> {
    let mut config = vec![0; 4096];
    config[0x06] = 0x10;
    config[0x34] = 0x40;
    config[0x40..0x42].copy_from_slice(&[0x01, 0x60]);
    config[0x60..0x64].copy_from_slice(&[0x10, 0x00, 0x62, 0x01]);
    config[0x68..0x6a].copy_from_slice(&0x2936_u16.to_le_bytes());
    config[0x74..0x78].copy_from_slice(&(75_u32 << 7).to_le_bytes());
    config[0x100..0x104].copy_from_slice(&[0x0b, 0x00, 0x01, 0x15]);
    config[0x150..0x158].copy_from_slice(&[0x0d, 0x00, 0x01, 0x00, 0x5f, 0x00, 0x1d, 0x00]);
    config
}

#[test]
fn acs_is_found_behind_another_capability() {
    let found = acs(&space()).unwrap().unwrap();
    assert_eq!(
        (found.capability, found.control),
        (
            0x5f,
            Register {
                offset: 0x156,
                value: 0x1d
            }
        )
    );
    assert_eq!(ats_control(&space()), Ok(None));
}

#[test]
fn a_space_that_is_cut_says_so_and_never_off() {
    let config = space();
    for length in [0, 1, 64, 255, 256] {
        assert_eq!(
            acs(&config[..length]),
            Err(Hidden { got: length }),
            "{length}"
        );
    }
    assert_eq!(device_control(&config[..64]), Err(Hidden { got: 64 }));
    assert_eq!(
        device_control(&config[..256]).unwrap().unwrap().value,
        0x2936
    );
}

#[test]
fn sizes_are_powers_of_two_up_to_4096() {
    let control = device_control(&space()).unwrap().unwrap();
    assert_eq!(control.offset, 0x68);
    assert_eq!(size(control.value >> 5 & 7), Some(256));
    assert_eq!(size(control.value >> 12 & 7), Some(512));
    assert_eq!((size(6), size(7)), (None, None), "reserved");
    assert_eq!(
        (
            size_field(4096),
            size_field(128),
            size_field(1000),
            size_field(8192)
        ),
        (Some(5), Some(0), None, None)
    );
}

#[test]
fn slot_power_has_a_scale_and_names_for_large_loads() {
    assert_eq!(slot_power_milliwatts(&space()), Ok(Some(75_000)));
    assert_eq!(slot_power(25, 1), Some(2500));
    assert_eq!(slot_power(0xf2, 0), Some(300_000));
    assert_eq!((slot_power(0xff, 0), slot_power(0, 0)), (None, None));
    let mut without = space();
    without[0x63] = 0;
    assert_eq!(slot_power_milliwatts(&without), Ok(None));
}

#[test]
fn lists_with_a_cycle_end() {
    let mut config = space();
    config[0x100..0x104].copy_from_slice(&[0x0b, 0x00, 0x01, 0x15]);
    config[0x150..0x154].copy_from_slice(&[0x0b, 0x00, 0x01, 0x10]);
    config[0x40..0x42].copy_from_slice(&[0x01, 0x40]);
    assert_eq!(acs(&config), Ok(None));
    assert_eq!(device_control(&config), Ok(None));
    assert_eq!(acs(&[0xff; 4096]), Ok(None), "a device that is gone");
}

#[test]
fn a_capture_keeps_acs_and_ats_and_no_serial_number() {
    let mut config = space();
    config[0x100..0x104].copy_from_slice(&[0x03, 0x00, 0x01, 0x15]);
    config[0x104..0x10c].copy_from_slice(&[0xaa; 8]);
    config[0x152..0x154].copy_from_slice(&[0x01, 0x20]);
    config[0x200..0x208].copy_from_slice(&[0x0f, 0x00, 0x01, 0x00, 0, 0, 0x00, 0x80]);
    let kept = without_identity(&config);
    assert_eq!((kept.len(), kept[0x104]), (4096, 0));
    assert_eq!(
        (acs(&kept), ats_control(&kept)),
        (acs(&config), ats_control(&config))
    );
    assert_eq!(kept[..256], config[..256]);
    assert_eq!(without_identity(&config[..256]), config[..256]);
    let without = without_identity(&[0x77; 4096]);
    assert_eq!(
        (acs(&without), &without[0x104..]),
        (Ok(None), &[0; 4096 - 0x104][..])
    );
}
