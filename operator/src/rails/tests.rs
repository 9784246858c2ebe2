use std::collections::BTreeSet;

use crds::fabric::{LinkLayer, NicMatch};
use proptest::prelude::*;

use super::*;

const CX7: &str = "15b3:1021";

/// A Compute NIC in a slot.
pub(crate) fn nic(slot: u8) -> NicStatus {
    NicStatus {
        pci: format!("0000:{slot:02x}:00.0"),
        rdma: Some(format!("mlx5_{slot}")),
        product: Some(CX7.to_owned()),
        netdevs: vec![format!("eth{slot}")],
        link_layers: vec![LinkLayer::Ethernet],
        rate: Some(400),
        ..NicStatus::default()
    }
}

fn nics(slots: &[u8]) -> Vec<NicStatus> {
    slots.iter().map(|slot| nic(*slot)).collect()
}

fn given(rails: &[(u8, u32)]) -> Vec<NicRail> {
    let one = |(slot, rail): &(u8, u32)| NicRail {
        pci: format!("0000:{slot:02x}:00.0"),
        rail: *rail,
    };
    rails.iter().map(one).collect()
}

/// One cluster over several passes.
#[derive(Default)]
struct Cluster {
    rules: Vec<RailRule>,
    ranges: BTreeSet<u32>,
    layouts: Vec<RailLayout>,
    nodes: BTreeMap<String, Vec<NicStatus>>,
    given: BTreeMap<String, Vec<NicRail>>,
    problems: BTreeMap<String, NodeReason>,
}

impl Cluster {
    fn report(&mut self, node: &str, slots: &[u8]) -> &mut Self {
        self.nodes.insert(node.to_owned(), nics(slots));
        self
    }

    fn pass(&mut self) {
        let empty = Vec::new();
        let sites: Vec<_> = self
            .nodes
            .iter()
            .map(|(node, nics)| Site {
                node,
                nics,
                given: self.given.get(node).unwrap_or(&empty),
            })
            .collect();
        let (layouts, railed) = resolve(&self.rules, &self.ranges, &self.layouts, &sites);
        self.layouts = layouts;
        self.problems = BTreeMap::new();
        for (node, one) in railed {
            self.problems
                .extend(one.problem.map(|problem| (node.clone(), problem.reason)));
            self.given.insert(node, one.rails);
        }
    }

    /// `1=0 2=1`: slot and rail.
    fn rails(&mut self, node: &str) -> String {
        self.pass();
        let one = |rail: &NicRail| {
            let slot = u8::from_str_radix(&rail.pci[5..7], 16).unwrap();
            format!("{slot}={}", rail.rail)
        };
        let rails: Vec<_> = self.given[node].iter().map(one).collect();
        rails.join(" ")
    }
}

fn rule(netdev: &str, rail: u32) -> RailRule {
    let matches = NicMatch {
        netdev: Some(netdev.to_owned()),
        ..NicMatch::default()
    };
    RailRule { matches, rail }
}

#[test]
fn slots_are_numbered_by_their_pci_addresses() {
    let mut cluster = Cluster::default();
    cluster.report("n1", &[0x1b, 0x0c, 0xa0]);
    cluster.nodes.get_mut("n1").unwrap()[0].pci = "10000:01:00.0".to_owned();
    cluster.pass();
    let rails: Vec<_> = cluster.given["n1"]
        .iter()
        .map(|one| (one.pci.as_str(), one.rail))
        .collect();
    let expected = [
        ("0000:0c:00.0", 0),
        ("0000:a0:00.0", 1),
        ("10000:01:00.0", 2),
    ];
    assert_eq!(rails, expected);
}

#[test]
fn a_missing_nic_leaves_a_hole_on_an_old_node_and_on_a_new_one() {
    let mut cluster = Cluster::default();
    cluster.report("n1", &[1, 2, 3, 4]);
    assert_eq!(cluster.rails("n1"), "1=0 2=1 3=2 4=3");
    cluster.report("n1", &[1, 3, 4]).report("n2", &[2, 3]);
    assert_eq!(
        cluster.rails("n1"),
        "1=0 2=1 3=2 4=3",
        "it keeps what it had"
    );
    assert_eq!(cluster.rails("n2"), "2=1 3=2");
    assert_eq!(cluster.layouts.len(), 1);
}

#[test]
fn a_complete_node_numbers_before_an_incomplete_one_that_is_seen_with_it() {
    let mut cluster = Cluster::default();
    cluster.report("n1", &[1, 3]).report("n2", &[1, 2, 3]);
    assert_eq!(cluster.rails("n1"), "1=0 3=2");
    assert_eq!(cluster.layouts.len(), 1);
}

#[test]
fn a_complete_node_after_an_incomplete_one_shifts_nothing() {
    let mut cluster = Cluster::default();
    cluster.report("n1", &[1, 3]);
    assert_eq!(cluster.rails("n1"), "1=0 3=1");
    cluster.report("n2", &[1, 2, 3]);
    assert_eq!(cluster.rails("n2"), "1=0 2=2 3=1", "a slot has one rail");
    assert_eq!(cluster.rails("n1"), "1=0 3=1");
    assert_eq!(
        cluster.layouts.len(),
        1,
        "the smaller one is no longer needed"
    );
}

#[test]
fn no_report_takes_nothing_away_and_gives_nothing() {
    let mut cluster = Cluster::default();
    assert_eq!(cluster.report("n1", &[]).rails("n1"), "");
    cluster.report("n1", &[1, 2]).pass();
    cluster.report("n1", &[]);
    assert_eq!(cluster.rails("n1"), "1=0 2=1");
}

#[test]
fn hardware_that_moved_is_numbered_anew() {
    let mut cluster = Cluster::default();
    cluster.report("n1", &[1, 2, 3]).pass();
    cluster.report("n1", &[1, 2, 9]);
    assert_eq!(cluster.rails("n1"), "1=0 2=1 9=2");
    cluster.report("n1", &[11, 12, 19]);
    assert_eq!(cluster.rails("n1"), "11=0 12=1 19=2");
}

#[test]
fn rules_come_first_and_the_first_of_them_wins() {
    let mut cluster = Cluster {
        rules: vec![rule("eth2", 7), rule("eth*", 9)],
        ..Cluster::default()
    };
    cluster.report("n1", &[1, 2, 3]);
    assert_eq!(cluster.rails("n1"), "1=9 2=7 3=9");
    cluster.rules = vec![rule("eth2", 7)];
    assert_eq!(cluster.rails("n1"), "1=0 2=7 3=2");
    cluster.rules.clear();
    assert_eq!(cluster.rails("n1"), "1=0 2=1 3=2", "the rule changed");
}

#[test]
fn two_nics_on_one_rail_are_said_where_they_do_harm() {
    let mut cluster = Cluster {
        rules: vec![rule("eth*", 0)],
        ..Cluster::default()
    };
    cluster.report("n1", &[1, 2]);
    assert_eq!(cluster.rails("n1"), "1=0 2=0");
    assert_eq!(cluster.problems, BTreeMap::new(), "a rule may ask for it");
    cluster.ranges = BTreeSet::from([0]);
    cluster.pass();
    let shared = BTreeMap::from([("n1".to_owned(), NodeReason::RailShared)]);
    assert_eq!(cluster.problems, shared);
    cluster.ranges.clear();
    cluster.rules = vec![rule("eth2", 0)];
    cluster.pass();
    assert_eq!(cluster.problems, shared, "the map put one of them there");
}

#[test]
fn roles_decide_who_has_a_rail() {
    let mut cluster = Cluster::default();
    cluster.report("n1", &[1, 2, 3, 4]);
    let roles = [
        NicRole::Management,
        NicRole::Storage,
        NicRole::Compute,
        NicRole::Ignore,
    ];
    for (nic, role) in cluster.nodes.get_mut("n1").unwrap().iter_mut().zip(roles) {
        nic.role = role;
    }
    assert_eq!(cluster.rails("n1"), "3=0");
    cluster.rules = vec![rule("eth1", 5), rule("eth2", 6)];
    assert_eq!(cluster.rails("n1"), "2=6 3=0", "a rule may ask for storage");
}

#[test]
fn a_rate_that_is_not_known_any_more_moves_nothing() {
    let fast = NicMatch {
        min_rate: Some(400),
        ..NicMatch::default()
    };
    let mut cluster = Cluster {
        rules: vec![RailRule {
            matches: fast,
            rail: 5,
        }],
        ..Cluster::default()
    };
    cluster.report("n1", &[1]);
    assert_eq!(cluster.rails("n1"), "1=5");
    cluster.nodes.get_mut("n1").unwrap()[0].rate = None;
    assert_eq!(cluster.rails("n1"), "1=5");
    cluster.nodes.get_mut("n1").unwrap()[0].rate = Some(100);
    assert_eq!(cluster.rails("n1"), "1=0");
}

#[test]
fn an_unknown_product_waits_for_the_next_report() {
    let mut cluster = Cluster::default();
    cluster.report("n1", &[1, 2]);
    cluster.nodes.get_mut("n1").unwrap()[1].product = None;
    assert_eq!(cluster.rails("n1"), "");
    cluster.report("n2", &[1, 2]);
    cluster.pass();
    assert_eq!(cluster.rails("n1"), "1=0 2=1", "the slots are known");
    assert_eq!(cluster.problems, BTreeMap::new());
}

#[test]
fn a_lost_status_is_made_again_from_what_nodes_have() {
    let mut cluster = Cluster::default();
    cluster
        .given
        .insert("n1".to_owned(), given(&[(1, 3), (2, 0), (3, 1)]));
    cluster.report("n1", &[1, 2, 3]).report("n2", &[1, 2, 3]);
    assert_eq!(cluster.rails("n2"), "1=3 2=0 3=1");
    assert_eq!(cluster.rails("n1"), "1=3 2=0 3=1");
}

#[test]
fn layouts_that_disagree_are_said_and_what_was_given_decides() {
    let mut cluster = Cluster::default();
    cluster.report("a", &[1, 2, 3]).report("b", &[2, 3, 4]);
    cluster.pass();
    cluster.report("n1", &[2, 3]);
    assert_eq!(cluster.rails("n1"), "");
    assert_eq!(cluster.problems["n1"], NodeReason::RailsAmbiguous);
    cluster.report("b", &[2, 3]);
    assert_eq!(cluster.rails("b"), "2=0 3=1 4=2");
    assert_eq!(cluster.problems.len(), 1, "{:?}", cluster.problems);
}

#[test]
fn more_layouts_than_are_kept_are_said() {
    let mut cluster = Cluster::default();
    for slot in 0..20 {
        cluster.report(&format!("n{slot:02}"), &[slot]);
    }
    cluster.pass();
    assert_eq!(cluster.layouts.len(), layouts::MOST_LAYOUTS);
    assert_eq!(cluster.problems.len(), 4);
    assert_eq!(cluster.problems["n16"], NodeReason::RailLayoutsFull);
    cluster.rules = vec![rule("eth*", 0)];
    cluster.pass();
    assert_eq!(cluster.problems, BTreeMap::new(), "rules need no map");
}

fn worlds() -> impl Strategy<Value = Vec<BTreeMap<u8, BTreeSet<u8>>>> {
    let slots = prop::collection::btree_set(0_u8..10, 0..8);
    let nodes = prop::collection::btree_map(0_u8..5, slots, 0..5);
    prop::collection::vec(nodes, 1..6)
}

proptest! {
    /// NICs come and go; a NIC that stays, on a node whose NICs only came, keeps its rail, and no two share one.
    #[test]
    fn rails_do_not_move_and_are_not_shared(worlds in worlds()) {
        let mut cluster = Cluster::default();
        for world in worlds {
            let before = (cluster.nodes.clone(), cluster.given.clone());
            for (node, slots) in &world {
                let slots: Vec<_> = slots.iter().copied().collect();
                cluster.report(&format!("n{node}"), &slots);
            }
            cluster.pass();
            for (node, rails) in &cluster.given {
                let used: BTreeSet<_> = rails.iter().map(|one| one.rail).collect();
                prop_assert_eq!(used.len(), rails.len(), "{} {:?}", node, rails);
                let same = before.0.get(node).is_some_and(|nics| *nics == cluster.nodes[node]);
                if same && !cluster.problems.contains_key(node) && !before.1[node].is_empty() {
                    prop_assert_eq!(rails, &before.1[node], "{}", node);
                }
            }
            let (layouts, given) = (cluster.layouts.clone(), cluster.given.clone());
            cluster.pass();
            prop_assert_eq!((layouts, given), (cluster.layouts.clone(), cluster.given.clone()));
        }
    }

    /// Losing NICs moves nothing and takes nothing.
    #[test]
    fn a_node_that_loses_nics_keeps_all_its_rails(
        slots in prop::collection::btree_set(0_u8..40, 1..16),
        lost in prop::collection::btree_set(0_u8..40, 0..16),
    ) {
        let mut cluster = Cluster::default();
        let all: Vec<_> = slots.iter().copied().collect();
        let left: Vec<_> = slots.difference(&lost).copied().collect();
        let before = cluster.report("n1", &all).rails("n1");
        let after = cluster.report("n1", &left).rails("n1");
        prop_assert_eq!(before, after);
    }
}
