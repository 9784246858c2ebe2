use super::*;

fn rule(rate: Option<u32>, layer: Option<LinkLayer>) -> NicMatch {
    NicMatch {
        rdma: Some("mlx5_*".to_owned()),
        min_rate: rate,
        link_layer: layer,
        ..NicMatch::default()
    }
}

#[test]
fn what_is_unknown_neither_matches_nor_decides() {
    let known = NicTraits {
        rdma: Some("mlx5_3"),
        link_layers: &[LinkLayer::Ethernet],
        rate: Some(400),
        ..NicTraits::default()
    };
    let unknown = NicTraits {
        link_layers: &[],
        rate: None,
        ..known
    };
    let other = NicTraits {
        rdma: Some("irdma0"),
        ..unknown
    };
    for rule in [
        rule(Some(200), None),
        rule(None, Some(LinkLayer::Ethernet)),
        rule(Some(400), Some(LinkLayer::Ethernet)),
    ] {
        assert!(rule.matches(&known) && !rule.is_undecided(&known));
        assert!(!rule.matches(&unknown) && rule.is_undecided(&unknown));
        assert!(!rule.matches(&other) && !rule.is_undecided(&other));
    }
    let half = NicTraits {
        rate: Some(100),
        ..unknown
    };
    assert!(!rule(Some(200), Some(LinkLayer::Ethernet)).is_undecided(&half));
}

#[test]
fn a_star_takes_every_end_and_no_star_takes_one_name() {
    let netdevs = ["eth1".to_owned(), "eth10".to_owned()];
    let nic = NicTraits {
        netdevs: &netdevs[1..],
        ..NicTraits::default()
    };
    for (pattern, expected) in [
        ("eth1", false),
        ("eth1*", true),
        ("eth10", true),
        ("*", true),
    ] {
        let rule = NicMatch {
            netdev: Some(pattern.to_owned()),
            ..NicMatch::default()
        };
        assert_eq!(rule.matches(&nic), expected, "{pattern}");
    }
}
