use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Pairing, pair};
use crate::distance::{Cells, Distance, DistanceSource, StatedDistances};
use crate::fact::Fact;
use crate::machine::{LinkLayer, Machine, NicRole, PortState};
use crate::pairing::candidates::Candidates;
use crate::policy::{NicSharing, ResourcePolicy, UnknownDistance};
use crate::test_machines::{gpu, limit, machine, nic};

/// A machine that is known by its matrix.
fn matrix(rows: &[&[Distance]]) -> Machine {
    let nics = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let row = |row: &&[Distance]| row.iter().copied().enumerate().collect::<BTreeMap<_, _>>();
    let cells: Cells = rows.iter().map(row).enumerate().collect();
    let source = DistanceSource::Matrix;
    Machine {
        gpus: (0..rows.len()).map(|index| gpu(index, None)).collect(),
        nics: (0..nics).map(|index| nic(index, None)).collect(),
        stated: Some(StatedDistances {
            source,
            cells,
            gpu_cells: Cells::new(),
            nic_cells: Cells::new(),
        }),
        ..Machine::default()
    }
}

fn run(machine: &Machine, policy: &ResourcePolicy) -> Pairing {
    pair(machine, &machine.paths(), policy)
}

fn nics(pairing: &Pairing) -> Vec<Vec<usize>> {
    pairing.pairs.iter().map(|pair| pair.nics.clone()).collect()
}

use Distance::{Node, Pix, Pxb, Sys, Unknown};

#[test]
fn a_closer_nic_is_given_up_where_that_makes_one_pair_more() {
    let machine = matrix(&[&[Pix, Pxb], &[Pix, Sys]]);
    let pairing = run(&machine, &ResourcePolicy::default());
    assert_eq!(nics(&pairing), [vec![1], vec![0]]);
    assert!(
        pairing.pairs[0]
            .reason
            .contains("mlx5_0 is closer (PIX) and goes to GPU1"),
        "{}",
        pairing.pairs[0].reason
    );
}

#[test]
fn the_worst_distance_counts_before_the_sum() {
    // 0-0 and 1-1 sum to PIX + NODE; the better worst is PXB + PXB.
    let machine = matrix(&[&[Pix, Pxb], &[Pxb, Node]]);
    let policy = ResourcePolicy {
        max_distance: Sys,
        ..ResourcePolicy::default()
    };
    assert_eq!(nics(&run(&machine, &policy)), [vec![1], vec![0]]);
}

#[test]
fn scarce_nics_are_shared_evenly_and_said() {
    let machine = matrix(&[&[Pix, Pix], &[Pix, Pix], &[Pix, Pix], &[Pix, Pix]]);
    let pairing = run(&machine, &ResourcePolicy::default());
    assert_eq!(nics(&pairing), [vec![0], vec![0], vec![1], vec![1]]);
    assert!(
        pairing
            .pairs
            .iter()
            .all(|pair| pair.shared && pair.reason.contains("shared with GPU"))
    );
}

#[test]
fn without_sharing_the_rest_stays_unpaired() {
    let machine = matrix(&[&[Pix], &[Pix]]);
    let policy = ResourcePolicy {
        nic_sharing: NicSharing::Never,
        ..ResourcePolicy::default()
    };
    let pairing = run(&machine, &policy);
    assert_eq!(nics(&pairing), [vec![0]]);
    assert!(
        pairing.unpaired[0]
            .reason
            .contains("goes to GPU0 and nicSharing is Never"),
        "{}",
        pairing.unpaired[0].reason
    );
}

#[test]
fn unknown_distances_follow_the_policy() {
    let machine = Machine {
        gpus: vec![
            gpu(0, Some("0001:00:00.0".parse().unwrap())),
            gpu(1, Some("0002:00:00.0".parse().unwrap())),
        ],
        nics: vec![
            nic(0, Some("0101:00:00.0".parse().unwrap())),
            nic(1, Some("0102:00:00.0".parse().unwrap())),
        ],
        ..Machine::default()
    };
    let policy = |unknown_distance| ResourcePolicy {
        unknown_distance,
        ..ResourcePolicy::default()
    };
    let by_order = run(&machine, &policy(UnknownDistance::ByOrder));
    assert_eq!(nics(&by_order), [vec![0], vec![1]]);
    assert!(
        by_order.pairs[0].reason.contains("index order"),
        "{}",
        by_order.pairs[0].reason
    );
    for refused in [UnknownDistance::TopologyFile, UnknownDistance::Refuse] {
        let pairing = run(&machine, &policy(refused));
        assert!(pairing.pairs.is_empty());
        assert!(
            pairing.unpaired[0]
                .reason
                .contains("unknownDistance: ByOrder"),
            "{}",
            pairing.unpaired[0].reason
        );
    }
}

#[test]
fn a_topology_file_is_believed_unless_the_policy_refuses() {
    let mut machine = matrix(&[&[Pix]]);
    machine.stated.as_mut().unwrap().source =
        DistanceSource::TopologyFile("/etc/topo.xml".to_owned());
    let pairing = run(&machine, &ResourcePolicy::default());
    assert!(
        pairing.pairs[0]
            .reason
            .contains("by the topology file /etc/topo.xml")
    );
    let policy = ResourcePolicy {
        unknown_distance: UnknownDistance::Refuse,
        ..ResourcePolicy::default()
    };
    assert!(
        run(&machine, &policy).unpaired[0]
            .reason
            .contains("unknownDistance is Refuse")
    );
}

#[test]
fn only_compute_nics_with_a_place_are_paired() {
    let mut machine = matrix(&[&[Pix, Unknown]]);
    machine.nics[0].role = NicRole::Storage;
    machine.nics[1].numa = Fact::Known(0);
    machine.gpus[0].numa = Fact::Known(0);
    let policy = ResourcePolicy {
        max_distance: Sys,
        ..ResourcePolicy::default()
    };
    assert!(run(&machine, &policy).pairs.is_empty());
    machine.nics[0].role = NicRole::Compute;
    assert_eq!(nics(&run(&machine, &policy)), [vec![0]]);
}

#[test]
fn a_faster_link_breaks_ties_and_a_pulled_cable_does_not() {
    let mut machine = matrix(&[&[Pxb, Pxb]]);
    machine.nics[0].ports[0].link_layer = Fact::Known(LinkLayer::Ethernet);
    let pairing = run(&machine, &ResourcePolicy::default());
    assert_eq!(nics(&pairing), [vec![1]]);
    assert!(
        pairing.pairs[0].reason.contains("slower or unlike link"),
        "{}",
        pairing.pairs[0].reason
    );
    machine.nics[1].ports[0].state = Fact::Known(PortState::Down);
    assert_eq!(run(&machine, &ResourcePolicy::default()), pairing);
}

#[test]
fn further_nics_are_spread_evenly_and_missing_ones_are_said() {
    let machine = matrix(&[&[Pix, Pix, Pix], &[Pix, Pix, Pix]]);
    let policy = ResourcePolicy {
        nics_per_gpu: 2,
        ..ResourcePolicy::default()
    };
    let pairing = run(&machine, &policy);
    assert_eq!(nics(&pairing), [vec![0, 2], vec![1]]);
    assert!(
        pairing.pairs[1].reason.contains("1 of 2 NICs"),
        "{}",
        pairing.pairs[1].reason
    );
    assert!(
        pairing.pairs[0].reason.contains("further mlx5_2 (PIX)"),
        "{}",
        pairing.pairs[0].reason
    );
}

#[test]
fn distinct_cards_are_preferred() {
    let mut machine = matrix(&[&[Pix, Pix, Pix], &[Pix, Pix, Pix]]);
    for (nic, pci) in ["0000:01:00.0", "0000:01:00.1", "0000:02:00.0"]
        .iter()
        .enumerate()
    {
        machine.nics[nic].pci = Some(pci.parse().unwrap());
    }
    assert_eq!(
        nics(&run(&machine, &ResourcePolicy::default())),
        [vec![0], vec![2]]
    );
}

/// The whole objective of an assignment; less is better.
type Objective = (
    Reverse<usize>,
    usize,
    i64,
    [i64; 4],
    Reverse<usize>,
    usize,
    Vec<usize>,
);

fn objective(candidates: &Candidates, chosen: &BTreeMap<usize, usize>) -> Objective {
    let nics: BTreeSet<usize> = chosen.values().copied().collect();
    let cards: BTreeSet<_> = nics.iter().map(|nic| &candidates.cards[nic]).collect();
    let (mut worst, mut sums) = (0, [0; 4]);
    for (&gpu, &nic) in chosen {
        let cost = candidates.cost(gpu, nic).unwrap();
        worst = worst.max(cost.distance);
        for (sum, key) in sums
            .iter_mut()
            .zip([cost.hops, cost.distance, cost.layer, cost.slowness])
        {
            *sum += key;
        }
    }
    let load = |nic: &usize| chosen.values().filter(|other| *other == nic).count().pow(2);
    let order = candidates
        .gpus
        .iter()
        .map(|gpu| chosen.get(gpu).copied().unwrap_or(usize::MAX))
        .collect();
    let shared = chosen.len() - nics.len();
    (
        Reverse(chosen.len()),
        shared,
        worst,
        sums,
        Reverse(cards.len()),
        nics.iter().map(load).sum(),
        order,
    )
}

/// Every assignment there is.
fn exhaustive(
    candidates: &Candidates,
    gpus: &[usize],
    share: bool,
    chosen: &mut BTreeMap<usize, usize>,
    best: &mut Option<Objective>,
) {
    let Some((&gpu, rest)) = gpus.split_first() else {
        let objective = objective(candidates, chosen);
        if best.as_ref().is_none_or(|best| objective < *best) {
            *best = Some(objective);
        }
        return;
    };
    for nic in candidates.nics_of(gpu).collect::<Vec<_>>() {
        if share || !chosen.values().any(|other| *other == nic) {
            chosen.insert(gpu, nic);
            exhaustive(candidates, rest, share, chosen, best);
            chosen.remove(&gpu);
        }
    }
    // With sharing, a GPU that could have a NIC and has none is never best.
    if !share || candidates.nics_of(gpu).next().is_none() {
        exhaustive(candidates, rest, share, chosen, best);
    }
}

fn check_against_exhaustive(machine: &Machine, policy: &ResourcePolicy) {
    let paths = machine.paths();
    let candidates = Candidates::new(machine, &paths, policy);
    let pairing = pair(machine, &paths, policy);
    let chosen: BTreeMap<usize, usize> = pairing
        .pairs
        .iter()
        .map(|pair| (pair.gpu, pair.nics[0]))
        .collect();
    let mut best = None;
    let gpus: Vec<usize> = candidates.gpus.iter().copied().collect();
    exhaustive(
        &candidates,
        &gpus,
        policy.nic_sharing == NicSharing::WhenScarce,
        &mut BTreeMap::new(),
        &mut best,
    );
    let best = best.unwrap();
    let ours = objective(&candidates, &chosen);
    assert_eq!(ours, best, "{chosen:?}");
}

fn policy() -> impl Strategy<Value = ResourcePolicy> {
    (limit(), any::<bool>()).prop_map(|(max_distance, share)| {
        let nic_sharing = if share {
            NicSharing::WhenScarce
        } else {
            NicSharing::Never
        };
        ResourcePolicy {
            max_distance,
            nic_sharing,
            ..ResourcePolicy::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn never_worse_than_an_exhaustive_search(machine in machine(0..=5, 0..=5), policy in policy()) {
        check_against_exhaustive(&machine, &policy);
    }

    #[test]
    fn every_matching_is_valid(machine in machine(0..=8, 0..=8), policy in policy(), nics_per_gpu in 1..4u32) {
        let policy = ResourcePolicy { nics_per_gpu, ..policy };
        let paths = machine.paths();
        let pairing = pair(&machine, &paths, &policy);
        let gpus = pairing.pairs.iter().map(|pair| pair.gpu).chain(pairing.unpaired.iter().map(|u| u.gpu));
        let mut gpus: Vec<usize> = gpus.collect();
        gpus.sort_unstable();
        prop_assert_eq!(gpus, (0..machine.gpus.len()).collect::<Vec<_>>());
        let uses = |nic: usize| pairing.pairs.iter().filter(move |pair| pair.nics.contains(&nic));
        for pair in &pairing.pairs {
            prop_assert!(!pair.nics.is_empty() && pair.nics.len() <= nics_per_gpu as usize);
            prop_assert!(pair.nics.iter().all(|nic| paths.distance(pair.gpu, *nic) <= policy.max_distance));
            prop_assert!(!pair.reason.is_empty());
            for (at, &nic) in pair.nics.iter().enumerate() {
                let declared = at == 0 && pair.shared;
                prop_assert!(declared || uses(nic).count() == 1, "{:?}", pairing);
            }
        }
        prop_assert!(pairing.unpaired.iter().all(|unpaired| !unpaired.reason.is_empty()));
    }

    #[test]
    fn input_order_makes_no_difference(machine in machine(1..=6, 1..=6), policy in policy()) {
        let mut shuffled = machine.clone();
        shuffled.gpus.reverse();
        shuffled.nics.rotate_left(1);
        prop_assert_eq!(run(&machine, &policy), run(&shuffled, &policy));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn never_worse_than_an_exhaustive_search_at_six_by_six(machine in machine(6..=6, 6..=6), policy in policy()) {
        check_against_exhaustive(&machine, &policy);
    }

    #[test]
    fn never_worse_than_an_exhaustive_search_at_eight_by_eight(machine in machine(8..=8, 8..=8)) {
        let policy = ResourcePolicy { nic_sharing: NicSharing::Never, ..ResourcePolicy::default() };
        check_against_exhaustive(&machine, &policy);
    }
}
