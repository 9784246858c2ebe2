use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn addresses(texts: &[&str]) -> HashSet<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn ask<'a>(node: &'a str, rail: u32, given: Option<&str>) -> Ask<'a> {
    Ask {
        node,
        rail,
        given: given.map(net),
        may_take: true,
    }
}

fn one(range: &str, foreign: &[&str], asks: Vec<Ask<'_>>) -> Allotted {
    let ranges = BTreeMap::from([(0, net(range))]);
    allot(&ranges, &addresses(foreign), &HashSet::new(), asks)
}

/// `n1=10.0.0.1/24 n2=…`, of all rails.
fn shown(allotted: &Allotted) -> String {
    let of = |(node, addresses): (&String, &Vec<NodeAddress>)| {
        let addresses: Vec<_> = addresses.iter().map(|one| one.address.as_str()).collect();
        format!("{node}={}", addresses.join(","))
    };
    let all: Vec<_> = allotted.addresses.iter().map(of).collect();
    all.join(" ")
}

#[test]
fn new_addresses_are_the_lowest_free_ones_of_hosts() {
    let table = [
        ("10.0.0.0/24", "n1=10.0.0.1/24 n2=10.0.0.3/24"),
        ("10.0.0.9/24", "n1=10.0.0.1/24 n2=10.0.0.3/24"),
        ("10.0.0.0/31", "n1=10.0.0.0/31 n2=10.0.0.1/31"),
        ("10.0.0.9/32", "n1=10.0.0.9/32"),
        ("fd00::/64", "n1=fd00::1/64 n2=fd00::3/64"),
        ("fd00::/127", "n1=fd00::/127 n2=fd00::1/127"),
        ("fd00::/126", "n1=fd00::1/126 n2=fd00::3/126"),
    ];
    for (range, expected) in table {
        let asks = vec![ask("n2", 0, None), ask("n1", 0, None)];
        let allotted = one(range, &["10.0.0.2", "fd00::2"], asks);
        assert_eq!(shown(&allotted), expected, "{range}");
    }
}

#[test]
fn what_is_given_stays_where_it_may() {
    let given = |address| vec![ask("n1", 0, Some(address)), ask("n2", 0, None)];
    for (address, expected) in [
        ("10.0.0.200/24", "n1=10.0.0.200/24 n2=10.0.0.1/24"),
        ("10.0.0.200/16", "n1=10.0.0.1/24 n2=10.0.0.2/24"),
        ("10.0.1.200/24", "n1=10.0.0.1/24 n2=10.0.0.2/24"),
        ("10.0.0.0/24", "n1=10.0.0.1/24 n2=10.0.0.2/24"),
        ("10.0.0.255/24", "n1=10.0.0.1/24 n2=10.0.0.2/24"),
        ("10.0.0.77/24", "n1=10.0.0.1/24 n2=10.0.0.2/24"),
        ("fd00::1/64", "n1=10.0.0.1/24 n2=10.0.0.2/24"),
    ] {
        let allotted = one("10.0.0.0/24", &["10.0.0.77"], given(address));
        assert_eq!(shown(&allotted), expected, "{address}");
    }
}

#[test]
fn of_two_with_one_address_the_first_keeps_it() {
    let twice = Some("10.0.0.5/24");
    let asks = vec![ask("n2", 0, twice), ask("n1", 0, twice)];
    assert_eq!(
        shown(&one("10.0.0.0/24", &[], asks)),
        "n1=10.0.0.5/24 n2=10.0.0.1/24"
    );
}

#[test]
fn what_one_node_loses_no_other_gets_in_the_same_pass() {
    let ranges = BTreeMap::from([(0, net("10.0.0.0/24"))]);
    let leaving = addresses(&["10.0.0.1"]);
    let asks = vec![ask("n2", 0, None), ask("n1", 0, Some("10.0.0.2/16"))];
    let allotted = allot(&ranges, &HashSet::new(), &leaving, asks);
    assert_eq!(shown(&allotted), "n1=10.0.0.3/24 n2=10.0.0.4/24");
}

#[test]
fn a_node_that_has_not_looked_keeps_and_takes_nothing() {
    let mut asks = vec![ask("n1", 0, None), ask("n2", 0, Some("10.0.0.9/24"))];
    for ask in &mut asks {
        ask.may_take = false;
    }
    let allotted = one("10.0.0.0/24", &[], asks);
    assert_eq!(shown(&allotted), "n2=10.0.0.9/24");
    assert_eq!(allotted.problems, BTreeMap::new());
}

#[test]
fn an_exhausted_range_says_how_many_ask() {
    let names = ["n1", "n2", "n3", "n4", "n5"];
    let asks = names.iter().map(|node| ask(node, 0, None)).collect();
    let allotted = one("10.10.0.0/30", &["10.10.0.2", "10.9.0.1"], asks);
    assert_eq!(shown(&allotted), "n1=10.10.0.1/30");
    assert_eq!(allotted.problems.len(), 4);
    let Problem { reason, message } = &allotted.problems["n5"];
    assert_eq!(*reason, NodeReason::AddressesExhausted);
    let expected = "10.10.0.0/30 has 2 addresses, 5 nodes ask, and 1 are in use elsewhere";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn an_address_for_a_rail_without_a_range_goes() {
    let asks = vec![ask("n1", 1, Some("10.0.0.9/24"))];
    assert_eq!(one("10.0.0.0/24", &[], asks), Allotted::default());
}

fn many<'a>(names: &'a [String], given: &BTreeMap<String, Vec<NodeAddress>>) -> Vec<Ask<'a>> {
    let pairs = names
        .iter()
        .flat_map(|node| (0..8).map(move |rail| (node, rail)));
    let ask = |(node, rail): (&'a String, u32)| {
        let mut has = given.get(node).into_iter().flatten();
        let found = has.find(|one| one.rail == rail);
        Ask {
            node,
            rail,
            given: found.map(|one| net(&one.address)),
            may_take: true,
        }
    };
    pairs.map(ask).collect()
}

/// A cluster of the largest size, twice: first all new, then all there but one.
#[test]
fn five_thousand_nodes_with_eight_rails_keep_their_addresses() {
    let names: Vec<String> = (0..5000).map(|n| format!("node-{n:04}")).collect();
    let ranges: BTreeMap<u32, IpNet> = (0..8)
        .map(|rail| (rail, net(&format!("10.{rail}.0.0/16"))))
        .collect();
    let none = HashSet::new();
    let first = allot(&ranges, &none, &none, many(&names, &BTreeMap::new()));
    let mut fewer = first.addresses.clone();
    fewer.remove("node-2500");
    let again = allot(&ranges, &none, &none, many(&names, &fewer));
    assert_eq!(again, first);
    let hosts = first.addresses.values().flatten();
    let hosts: HashSet<&str> = hosts.map(|one| one.address.as_str()).collect();
    assert_eq!(hosts.len(), 40_000, "each has its own");
}

#[derive(Debug, Clone)]
struct Case {
    ranges: BTreeMap<u32, IpNet>,
    foreign: HashSet<IpAddr>,
    asks: Vec<(u8, u32, Option<u8>)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let prefixes = prop::collection::vec(24_u8..=32, 1..4);
    let foreign = prop::collection::vec((0_u8..4, any::<u8>()), 0..20);
    let asks = prop::collection::vec((0_u8..12, 0_u32..4, prop::option::of(any::<u8>())), 0..40);
    (prefixes, foreign, asks).prop_map(|(prefixes, foreign, asks)| Case {
        ranges: (0_u32..)
            .zip(prefixes)
            .map(|(rail, prefix)| (rail, net(&format!("10.0.{rail}.0/{prefix}"))))
            .collect(),
        foreign: foreign
            .into_iter()
            .map(|(rail, host)| format!("10.0.{rail}.{host}").parse().unwrap())
            .collect(),
        asks,
    })
}

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

fn asks_of(case: &Case) -> Vec<Ask<'static>> {
    let mut keys = BTreeSet::new();
    let asks = case.asks.iter().filter(|ask| keys.insert((ask.0, ask.1)));
    asks.map(|(node, rail, host)| {
        let prefix = case.ranges.get(rail).map_or(24, IpNet::prefix_len);
        let given = host.map(|host| format!("10.0.{rail}.{host}/{prefix}"));
        ask(NAMES[usize::from(*node)], *rail, given.as_deref())
    })
    .collect()
}

fn given_after<'a>(allotted: &Allotted, asks: &[Ask<'a>]) -> Vec<Ask<'a>> {
    let of = |ask: &Ask<'a>| {
        let mut has = allotted.addresses.get(ask.node).into_iter().flatten();
        let found = has.find(|one| one.rail == ask.rail);
        Ask {
            given: found.map(|one| net(&one.address)),
            ..ask.clone()
        }
    };
    asks.iter().map(of).collect()
}

proptest! {
    #[test]
    fn addresses_are_unique_hosts_of_their_range_and_nobody_elses(case in cases()) {
        let asks = asks_of(&case);
        let allotted = allot(&case.ranges, &case.foreign, &HashSet::new(), asks);
        let mut seen = HashSet::new();
        for one in allotted.addresses.values().flatten() {
            let address = net(&one.address);
            let range = case.ranges[&one.rail];
            prop_assert!(seen.insert(address.addr()), "{} twice", address);
            prop_assert!(is_host(&range, address.addr()), "{address} of {range}");
            prop_assert_eq!(address.prefix_len(), range.prefix_len());
            prop_assert!(!case.foreign.contains(&address.addr()));
        }
    }

    /// The same again changes nothing, and an address that could stay did.
    #[test]
    fn what_is_there_is_kept(case in cases()) {
        let asks = asks_of(&case);
        let none = HashSet::new();
        let first = allot(&case.ranges, &case.foreign, &none, asks.clone());
        let settled = given_after(&first, &asks);
        let again = allot(&case.ranges, &case.foreign, &none, settled.clone());
        for (before, after) in settled.iter().zip(given_after(&again, &settled)) {
            prop_assert!(before.given.is_none() || before.given == after.given);
        }
        let others = |ask: &Ask<'_>| asks.iter().filter(|one| one.given == ask.given).count();
        for ask in asks.iter().filter(|ask| others(ask) == 1) {
            let (Some(given), Some(range)) = (ask.given, case.ranges.get(&ask.rail)) else { continue };
            let free = is_host(range, given.addr()) && !case.foreign.contains(&given.addr());
            let kept = first.addresses.get(ask.node).into_iter().flatten().any(|one| net(&one.address) == given);
            prop_assert_eq!(free, kept, "{:?}", ask);
        }
    }

    /// Whoever sees only a part of what was just written decides the same.
    #[test]
    fn a_cache_that_lags_behind_makes_no_difference(case in cases(), shown in any::<u64>()) {
        let none = HashSet::new();
        let asks: Vec<_> = asks_of(&case).into_iter().map(|ask| Ask { given: None, ..ask }).collect();
        let first = allot(&case.ranges, &case.foreign, &none, asks.clone());
        let all = given_after(&first, &asks);
        let part = asks.iter().zip(all).enumerate().map(|(index, (old, new))| {
            if shown >> (index % 64) & 1 == 1 { new } else { old.clone() }
        });
        let again = allot(&case.ranges, &case.foreign, &none, part.collect());
        prop_assert_eq!(again.addresses, first.addresses);
    }

    /// A node that leaves moves nobody.
    #[test]
    fn a_node_that_goes_frees_its_own_and_moves_nobody(case in cases(), gone in 0_usize..12) {
        let none = HashSet::new();
        let asks = asks_of(&case);
        let first = allot(&case.ranges, &case.foreign, &none, asks.clone());
        let mut left = given_after(&first, &asks);
        left.retain(|ask| ask.node != NAMES[gone]);
        let after = allot(&case.ranges, &case.foreign, &none, left.clone());
        for ask in left.iter().filter(|ask| ask.given.is_some()) {
            let has = after.addresses[ask.node].iter().map(|one| net(&one.address));
            prop_assert!(has.into_iter().any(|one| Some(one) == ask.given));
        }
    }
}
