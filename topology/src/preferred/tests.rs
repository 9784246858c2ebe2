use std::collections::BTreeSet;

use proptest::prelude::*;

use super::Way;
use super::search::sums;
use super::{Link, Preference};
use crate::distance::Distance;
use crate::node_file::{DeviceLink, NodeDevice, NodeNic, NodeResource};
use crate::policy::ResourceKind;

fn id(at: usize) -> String {
    format!("GPU-{at:02}")
}

fn device(id: String, links: Vec<DeviceLink>) -> NodeDevice {
    NodeDevice {
        id,
        gpu: None,
        nics: Vec::new(),
        shared: false,
        numa_nodes: Vec::new(),
        cdi_devices: Vec::new(),
        device_nodes: Vec::new(),
        links,
        admitted: true,
        verified: true,
        reason: String::new(),
        pair_reason: String::new(),
    }
}

fn resource(kind: ResourceKind, devices: Vec<NodeDevice>) -> NodeResource {
    NodeResource {
        name: "rdma/gpudirect".to_owned(),
        kind,
        hold_down_seconds: 30,
        stable_up_seconds: 60,
        unhealthy_on_nic_down: true,
        nic_lists: Vec::new(),
        envs: Vec::new(),
        devices,
    }
}

fn linked(count: usize, link: impl Fn(usize, usize) -> (u32, Distance, bool)) -> NodeResource {
    let to = |a: usize| {
        (0..count)
            .filter(move |b| *b != a)
            .map(move |b| (a.min(b), a.max(b), b))
            .map(|(low, high, b)| {
                let (nvlinks, distance, same) = link(low, high);
                DeviceLink {
                    to: id(b),
                    nvlinks,
                    distance,
                    same_numa: Some(same),
                }
            })
    };
    resource(
        ResourceKind::Pair,
        (0..count).map(|a| device(id(a), to(a).collect())).collect(),
    )
}

/// A DGX A100's shape: every NVLink alike, two GPUs on each switch, two switches on each socket half.
fn dgx(count: usize) -> NodeResource {
    linked(count, |a, b| {
        let distance = if a / 2 == b / 2 {
            Distance::Pxb
        } else if a / 4 == b / 4 {
            Distance::Node
        } else {
            Distance::Sys
        };
        (12, distance, a / 4 == b / 4)
    })
}

fn choose(
    resource: &NodeResource,
    available: &[usize],
    must: &[usize],
    size: usize,
) -> Vec<String> {
    let ids = |at: &[usize]| at.iter().map(|at| id(*at)).collect::<Vec<_>>();
    Preference::new(resource).choose(&ids(available), &ids(must), size)
}

fn named(at: &[usize]) -> Vec<String> {
    at.iter().map(|at| id(*at)).collect()
}

#[test]
fn two_come_from_one_switch_and_four_from_one_socket() {
    let machine = dgx(8);
    assert_eq!(choose(&machine, &[1, 2, 3, 4], &[], 2), named(&[2, 3]));
    assert_eq!(
        choose(&machine, &[0, 1, 2, 4, 5, 6, 7], &[], 4),
        named(&[4, 5, 6, 7])
    );
}

#[test]
fn one_comes_from_a_group_that_is_already_broken() {
    assert_eq!(choose(&dgx(8), &[0, 1, 2, 3, 4, 6, 7], &[], 1), named(&[4]));
    assert_eq!(choose(&dgx(8), &[0, 1, 3, 4, 5, 6, 7], &[], 1), named(&[3]));
}

#[test]
fn nvlinks_count_before_pcie() {
    let machine = linked(4, |a, b| {
        if (a, b) == (0, 3) {
            (4, Distance::Sys, false)
        } else {
            (0, Distance::Pix, true)
        }
    });
    assert_eq!(choose(&machine, &[0, 1, 2, 3], &[], 2), named(&[0, 3]));
}

#[test]
fn what_must_be_included_is() {
    assert_eq!(
        choose(&dgx(8), &[0, 1, 2, 3, 4, 5], &[3], 2),
        named(&[2, 3])
    );
    assert_eq!(choose(&dgx(8), &[0, 1], &[3, 5], 1), named(&[3, 5]));
}

#[test]
fn unknown_ids_are_dropped_and_nothing_panics() {
    let preference = Preference::new(&dgx(4));
    let ids = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        preference.choose(&ids(&["GPU-01", "gone", "GPU-01"]), &ids(&["lost"]), 3),
        ids(&["GPU-01"])
    );
    assert!(preference.choose(&[], &[], 5).is_empty());
    assert!(preference.choose(&ids(&["GPU-00"]), &[], 0).is_empty());
    assert!(
        Preference::new(&resource(ResourceKind::Pair, Vec::new()))
            .choose(&ids(&["x"]), &[], 1)
            .is_empty()
    );
}

#[test]
fn above_sixteen_the_choice_is_greedy_and_still_good() {
    let machine = dgx(24);
    let available: Vec<usize> = (1..24).collect();
    assert_eq!(choose(&machine, &available, &[], 4), named(&[4, 5, 6, 7]));
    assert_eq!(choose(&machine, &available, &[], 1), named(&[1]));
}

fn shared(nics: usize, replicas: usize) -> NodeResource {
    let device = |nic: usize, replica: usize| {
        let rdma = format!("mlx5_{nic}");
        let nic = NodeNic {
            uverbs: None,
            rdma: rdma.clone(),
            pci: None,
            ports: vec![1],
            distance: None,
            rail: None,
        };
        NodeDevice {
            nics: vec![nic],
            shared: true,
            ..device(format!("{rdma}-{replica}"), Vec::new())
        }
    };
    let all = (0..nics).flat_map(|nic| (0..replicas).map(move |replica| (nic, replica)));
    resource(
        ResourceKind::SharedNic,
        all.map(|(nic, replica)| device(nic, replica)).collect(),
    )
}

#[test]
fn shared_nics_are_spread() {
    let preference = Preference::new(&shared(2, 3));
    let ids = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let available = ids(&["mlx5_0-2", "mlx5_1-0", "mlx5_1-1", "mlx5_1-2"]);
    assert_eq!(preference.choose(&available, &[], 1), ids(&["mlx5_1-0"]));
    assert_eq!(
        preference.choose(&available, &[], 2),
        ids(&["mlx5_0-2", "mlx5_1-0"])
    );
}

fn any_link() -> impl Strategy<Value = (u32, Distance, bool)> {
    let distances = [
        Distance::Pix,
        Distance::Pxb,
        Distance::Phb,
        Distance::Node,
        Distance::Sys,
        Distance::Unknown,
    ];
    (
        0..3u32,
        proptest::sample::select(distances.to_vec()),
        any::<bool>(),
    )
}

fn connections(preference: &Preference) -> &[Vec<Link>] {
    match &preference.way {
        Way::Connected(links) => links,
        Way::Spread(_) => &[],
    }
}

/// Sets of the right size that contain what they must, best first.
fn exhaustive(
    links: &[Vec<Link>],
    available: &[usize],
    must: &BTreeSet<usize>,
    size: usize,
) -> Vec<usize> {
    let subsets = (0..1usize << available.len()).map(|mask| -> Vec<usize> {
        available
            .iter()
            .enumerate()
            .filter(|(bit, _)| mask >> bit & 1 == 1)
            .map(|(_, at)| *at)
            .collect()
    });
    let fitting = subsets.filter(|set| set.len() == size && must.iter().all(|at| set.contains(at)));
    let score = |set: &Vec<usize>| {
        let rest: Vec<usize> = available
            .iter()
            .filter(|at| !set.contains(at))
            .copied()
            .collect();
        (
            sums(links, set).inside(),
            sums(links, &rest).remaining(),
            set.clone(),
        )
    };
    fitting.min_by_key(score).unwrap_or_default()
}

proptest! {
    #[test]
    fn never_worse_than_an_exhaustive_search(
        links in proptest::collection::vec(any_link(), 64),
        there in proptest::collection::vec(any::<bool>(), 8),
        must in proptest::collection::vec(proptest::bool::weighted(0.1), 8),
        size in 0..8usize,
    ) {
        let machine = linked(8, |a, b| links[a * 8 + b]);
        let available: Vec<usize> = (0..8).filter(|at| there[*at] || must[*at]).collect();
        let must: BTreeSet<usize> = (0..8).filter(|at| must[*at]).collect();
        let size = size.clamp(must.len(), available.len());
        let preference = Preference::new(&machine);
        let expected = exhaustive(connections(&preference), &available, &must, size);
        let must: Vec<usize> = must.into_iter().collect();
        prop_assert_eq!(choose(&machine, &available, &must, size), named(&expected));
    }
}

/// Sixteen GPUs, two to a switch, four switches to a socket, in an order that has nothing to do with it.
fn mixed() -> NodeResource {
    let place = |at: usize| at * 7 % 16;
    linked(16, |a, b| {
        let (a, b) = (place(a), place(b));
        let distance = match (a / 2 == b / 2, a / 8 == b / 8) {
            (true, _) => Distance::Pix,
            (_, true) => Distance::Node,
            _ => Distance::Sys,
        };
        (18, distance, a / 8 == b / 8)
    })
}

#[test]
fn sixteen_devices_are_chosen_as_by_an_exhaustive_search() {
    let (machine, all): (_, Vec<usize>) = (mixed(), (0..16).collect());
    let preference = Preference::new(&machine);
    for size in 0..=16 {
        let expected = exhaustive(connections(&preference), &all, &BTreeSet::new(), size);
        assert_eq!(
            choose(&machine, &all, &[], size),
            named(&expected),
            "{size}"
        );
    }
}
