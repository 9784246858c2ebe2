use super::*;

const QUERY: &str = "\nDevice #1:\n----------\n\nDevice type:    ConnectX7\nName:           MCX75310AAS\nDevice:         0000:1b:00.0\n\nConfigurations:                              Default         Current         Next Boot\n*        LINK_TYPE_P1                                IB(1)           IB(1)           ETH(2)\n         ATS_ENABLED                                 False(0)        False(0)        False(0)\n         NUM_OF_VFS                                  0               8               8\nThe '*' shows parameters with next value different from default/current value.\n";

#[test]
fn current_and_next_are_two_values() {
    let settings = parse(QUERY).unwrap();
    assert_eq!(
        settings.keys().collect::<Vec<_>>(),
        ["ATS_ENABLED", "LINK_TYPE_P1", "NUM_OF_VFS"]
    );
    let link = &settings["LINK_TYPE_P1"];
    assert_eq!(
        (link.current.as_str(), link.next.as_str()),
        ("IB(1)", "ETH(2)")
    );
    assert_eq!(
        (
            Setting::number(&link.next),
            Setting::number("8"),
            Setting::number("?")
        ),
        (Some(2), Some(8), None)
    );
}

#[test]
fn an_answer_without_a_list_is_no_answer() {
    assert_eq!(parse("-E- Failed to open the device"), None);
    assert_eq!(
        parse("Configurations: Default Current Next\n"),
        Some(Settings::new())
    );
}
