//! Points 16 to 19: which devices the plugin would take.

use std::collections::BTreeSet;

use device_plugin::proto::{ContainerPreferredAllocationRequest, PreferredAllocationRequest};

use crate::calls::bench_of;
use crate::fake::Api;
use crate::sample;

/// What the plugin would take for one container.
pub async fn prefer(api: &Api, available: &[usize], must: &[usize], size: i32) -> Vec<String> {
    let container = ContainerPreferredAllocationRequest {
        available_device_ids: sample::ids(available),
        must_include_device_ids: sample::ids(must),
        allocation_size: size,
    };
    let request = PreferredAllocationRequest {
        container_requests: vec![container],
    };
    let answer = api
        .clone()
        .get_preferred_allocation(request)
        .await
        .unwrap()
        .into_inner();
    answer
        .container_responses
        .into_iter()
        .next()
        .unwrap()
        .device_ids
}

#[tokio::test]
async fn kubelet_16_prefers_linked_pairs_and_keeps_what_must_be_included() {
    let bench = bench_of(4, |_| {}).await;
    assert_eq!(
        prefer(&bench.api, &[0, 2, 3], &[], 2).await,
        sample::ids(&[2, 3])
    );
    assert_eq!(
        prefer(&bench.api, &[0, 1, 2, 3], &[1], 2).await,
        sample::ids(&[0, 1])
    );
    bench.plugin.stop().await;
}

#[tokio::test]
async fn kubelet_17_answers_an_empty_list_instead_of_an_error() {
    let bench = bench_of(4, |_| {}).await;
    assert!(prefer(&bench.api, &[0, 1], &[], 5).await.is_empty());
    assert!(prefer(&bench.api, &[0, 9], &[], 1).await.is_empty());
    assert!(prefer(&bench.api, &[0, 1], &[3], 1).await.is_empty());
    assert!(prefer(&bench.api, &[], &[], -7).await.is_empty());
    bench.plugin.stop().await;
}

/// Pairs 2k and 2k+1 have `NVLinks` between them. Whatever the size: as many of these twos as fit, lowest first, and for an
/// odd size one of those that are alone already.
fn best(twos: &[usize], alone: &[usize], size: usize) -> Vec<String> {
    let whole = (size / 2).min(twos.len());
    let both = twos[..whole].iter().flat_map(|low| [*low, low + 1]);
    let rest = alone.iter().copied().take(size - 2 * whole);
    let chosen: BTreeSet<usize> = both.chain(rest).collect();
    sample::ids(&chosen.into_iter().collect::<Vec<_>>())
}

/// The kubelet waits without a deadline, so an answer may depend on nothing that can be slow: all was worked out when the
/// node file came. Nothing but the sockets is left of the node here, and every answer is the exact one still.
#[tokio::test]
async fn kubelet_18_answers_from_memory_for_every_size_of_sixteen_pairs() {
    let bench = bench_of(16, |_| {}).await;
    for gone in ["root", "dev"] {
        bench.node.remove(gone);
    }
    let broken: Vec<usize> = (0..16).filter(|n| ![1, 5].contains(n)).collect();
    let twos = [2, 6, 8, 10, 12, 14];
    for size in 1..=broken.len() {
        let asked = i32::try_from(size).unwrap();
        let answer = prefer(&bench.api, &broken, &[], asked).await;
        assert_eq!(answer, best(&twos, &[0, 4], size), "{size} of 14");
    }
    bench.node.remove("run");
    let all: Vec<usize> = (0..16).collect();
    for size in 1..=16 {
        let asked = i32::try_from(size).unwrap();
        let answer = prefer(&bench.api, &all, &[], asked).await;
        assert_eq!(answer, sample::ids(&all[..size]), "{size} of 16");
    }
    bench.plugin.stop().await;
}

#[tokio::test]
async fn kubelet_19_takes_a_single_pair_from_a_group_that_is_broken_already() {
    let bench = bench_of(8, |_| {}).await;
    let one = async |available: &[usize]| prefer(&bench.api, available, &[], 1).await;
    assert_eq!(one(&[0, 1, 2, 3, 5, 6, 7]).await, sample::ids(&[5]));
    assert_eq!(one(&[0, 1, 2, 3, 4, 5, 7]).await, sample::ids(&[7]));
    assert_eq!(one(&[1, 2, 3, 4, 6, 7]).await, sample::ids(&[1]));
    // The third of three comes from there too.
    let three = prefer(&bench.api, &[0, 1, 2, 3, 5, 6, 7], &[], 3).await;
    assert_eq!(three, sample::ids(&[0, 1, 5]));
    bench.plugin.stop().await;
}
