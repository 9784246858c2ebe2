use topology::machine::PortState;

use super::{port_state, rate_mbps};

#[test]
fn rates_are_read_in_megabits() {
    assert_eq!(rate_mbps("400 Gb/sec (4X NDR)"), Some(400_000));
    assert_eq!(rate_mbps("2.5 Gb/sec (1X SDR)"), Some(2_500));
    assert_eq!(rate_mbps("0 Gb/sec (4X SDR)"), Some(0));
    for garbage in [
        "",
        "400",
        "fast Gb/sec",
        "2.55 Gb/sec",
        "-1 Gb/sec",
        "99999999999999999999 Gb/sec",
        "1 Mb/sec",
    ] {
        assert_eq!(rate_mbps(garbage), None, "{garbage}");
    }
}

#[test]
fn states_are_read_by_number() {
    assert_eq!(port_state("4: ACTIVE"), Some(PortState::Active));
    assert_eq!(port_state("5: ACTIVE_DEFER"), Some(PortState::ActiveDefer));
    assert_eq!(port_state("1: DOWN"), Some(PortState::Down));
    for garbage in ["", "0: NOP", "6: X", "ACTIVE"] {
        assert_eq!(port_state(garbage), None, "{garbage}");
    }
}
