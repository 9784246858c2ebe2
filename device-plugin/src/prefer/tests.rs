use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::resource::{Plan, Troubles};
use crate::sample;

fn resource(count: usize) -> Resource {
    Resource::new(
        Arc::new(Plan::new(sample::resource(sample::RESOURCE, count))),
        Troubles::new(),
    )
}

fn request(available: &[String], must: &[String], size: i32) -> PreferredAllocationRequest {
    let container = Request {
        available_device_ids: available.to_vec(),
        must_include_device_ids: must.to_vec(),
        allocation_size: size,
    };
    PreferredAllocationRequest {
        container_requests: vec![container],
    }
}

fn ask(available: &[usize], must: &[usize], size: i32) -> Vec<String> {
    let request = request(&sample::ids(available), &sample::ids(must), size);
    prefer(Some(&resource(4)), &request)
        .container_responses
        .remove(0)
        .device_ids
}

#[test]
fn prefers_the_pairs_that_are_linked() {
    assert_eq!(ask(&[0, 1, 2, 3], &[], 2).len(), 2);
    assert_eq!(ask(&[0, 2, 3], &[], 2), sample::ids(&[2, 3]));
    assert_eq!(ask(&[0, 1, 2, 3], &[3], 2), sample::ids(&[2, 3]));
}

#[test]
fn takes_a_single_one_from_a_group_that_is_broken_already() {
    assert_eq!(ask(&[0, 2, 3], &[], 1), sample::ids(&[0]));
}

#[test]
fn answers_nothing_to_what_does_not_fit() {
    assert!(ask(&[0, 1], &[], 3).is_empty(), "more than there are");
    assert!(
        ask(&[0, 1], &[2], 1).is_empty(),
        "must be there and is not available"
    );
    assert!(
        ask(&[0, 1], &[0, 1], 1).is_empty(),
        "fewer than must be there"
    );
    assert!(ask(&[0, 1], &[], -1).is_empty(), "negative");
    assert!(ask(&[0, 0, 1], &[], 2).is_empty(), "twice");
    assert!(ask(&[0, 9], &[], 1).is_empty(), "unknown");
}

#[test]
fn answers_every_container_even_without_the_resource() {
    let mut two = request(&sample::ids(&[0]), &[], 1);
    two.container_requests
        .push(two.container_requests[0].clone());
    let answer = prefer(None, &two).container_responses;
    assert_eq!(answer, vec![Response::default(), Response::default()]);
}

proptest! {
    /// Either nothing, or exactly `size` distinct ids among the available ones, with those that must be there.
    #[test]
    fn answers_what_the_kubelet_takes(
        available in prop::collection::vec(0_usize..8, 0..8),
        must in prop::collection::vec(0_usize..8, 0..3),
        size in -1_i32..9,
    ) {
        let (available, must) = (sample::ids(&available), sample::ids(&must));
        let answer = prefer(Some(&resource(6)), &request(&available, &must, size)).container_responses.remove(0).device_ids;
        if !answer.is_empty() {
            let set: BTreeSet<&String> = answer.iter().collect();
            prop_assert_eq!(i32::try_from(set.len()).unwrap(), size);
            prop_assert_eq!(set.len(), answer.len());
            prop_assert!(set.iter().all(|id| available.contains(id)));
            prop_assert!(must.iter().all(|id| set.contains(id)));
        }
    }
}
