use super::*;

fn masked(addresses: &[&str]) -> Vec<String> {
    let mut networks = Networks::default();
    let mask = |text: &&str| networks.mask(text.parse().unwrap()).to_string();
    addresses.iter().map(mask).collect()
}

fn common(a: &str, b: &str) -> u32 {
    let bits = |text: &str| match text.parse::<IpAddr>().unwrap() {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    (bits(a) ^ bits(b)).leading_zeros()
}

#[test]
fn addresses_of_one_network_stay_in_one_and_no_other_does() {
    for given in [
        ["10.17.3.5", "10.17.3.254", "10.17.99.1", "10.200.0.1"],
        ["203.0.113.7", "203.0.113.8", "203.0.200.1", "203.200.0.1"],
        ["fd17:5c11::5", "fd17:5c11::6", "fd17:5c11:1::1", "fdff::1"],
        [
            "2a00:17:5c11::5",
            "2a00:17:5c11::6",
            "2a00:17:5c12::5",
            "2a00:17::1",
        ],
    ] {
        let shown = masked(&given);
        for (a, x) in given.iter().zip(&shown) {
            for (b, y) in given.iter().zip(&shown) {
                assert_eq!(common(x, y), common(a, b), "{a} {b} -> {x} {y}");
            }
        }
        let again: Vec<&str> = shown.iter().map(String::as_str).collect();
        assert_eq!(masked(&again), shown, "masked twice is masked once");
        assert_ne!(shown, given);
    }
}

#[test]
fn what_everybody_has_stays_and_families_do_not_mix() {
    let common = ["0.0.0.0", "127.0.0.1", "::", "::1", "224.0.0.1", "ff02::1"];
    assert_eq!(masked(&common), common);
    assert_eq!(
        masked(&[
            "8.8.8.8",
            "9.9.9.9",
            "192.168.7.9",
            "fe80::ba59:9fff:fec0:ffee"
        ]),
        ["240.0.0.0", "241.0.0.0", "192.168.0.0", "fe80::"]
    );
    assert_eq!(masked(&["2a00:1::1", "2a00:2::1"]), ["3fff::", "3fff:1::"]);
}
