use super::*;

fn opening(cidr: &str) -> Result<Opening, OpeningError> {
    Opening::new(cidr, Protocol::Tcp, (1024, 65535))
}

#[test]
fn host_bits_do_not_count() {
    assert_eq!(
        opening("10.10.3.7/16").unwrap().to_string(),
        "tcp 1024-65535 from 10.10.0.0/16"
    );
    assert_eq!(opening("fd00:1::7/64").unwrap().cidr(), "fd00:1::/64");
    assert_eq!(opening("0.0.0.0/0").unwrap().cidr(), "0.0.0.0/0");
    for wrong in [
        "",
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0/8",
        "10.0.0.0/8; drop",
        "$(id)/8",
        "-s/8",
        "fd00::/129",
    ] {
        assert!(opening(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_range_lies_within_itself_and_wider_ones() {
    let own = opening("10.10.0.0/16").unwrap();
    for wide in ["10.10.0.0/16", "10.0.0.0/8", "0.0.0.0/0"] {
        assert!(own.is_within(wide), "{wide}");
    }
    for other in [
        "10.10.0.0/24",
        "10.11.0.0/16",
        "10.10.0.1",
        "::/0",
        "@set",
        "10.0.0.0/x",
    ] {
        assert!(!own.is_within(other), "{other}");
    }
}

#[test]
fn names_that_a_tool_could_misread_are_not_plain() {
    let nft = |table: &str| Via::Nft {
        family: "inet".to_owned(),
        table: table.to_owned(),
        chain: "input".to_owned(),
    };
    assert!(nft("filter").is_plain() && nft("my_table-2").is_plain());
    for odd in ["", "-f", "a b", "a;b", "\"a\"", "a{"] {
        assert!(!nft(odd).is_plain(), "{odd}");
    }
}
