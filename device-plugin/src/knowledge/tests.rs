use super::*;
use crate::sample;

const QUIET: Duration = Duration::from_mins(5);

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn good(count: usize) -> Reading {
    Reading::Good(Box::new(sample::node_file(count)))
}

fn learn(looks: Vec<(u64, Reading)>) -> Knowledge {
    looks
        .into_iter()
        .fold(Knowledge::default(), |known, (at, reading)| {
            known.learn(reading, s(at), QUIET)
        })
}

/// Ids in the list with what is against them.
fn troubles(knowledge: &Knowledge) -> Vec<(String, Option<String>)> {
    let known = &knowledge.resources[sample::RESOURCE];
    known
        .spec
        .devices
        .iter()
        .map(|device| (device.id.clone(), knowledge.trouble(known, device)))
        .collect()
}

fn is_all_good(knowledge: &Knowledge, count: usize) -> bool {
    let list = troubles(knowledge);
    list.len() == count && list.iter().all(|(_, trouble)| trouble.is_none())
}

#[test]
fn nothing_is_registered_before_the_first_good_file() {
    let other = Reading::OtherBoot {
        file: "a".to_owned(),
        host: "b".to_owned(),
    };
    for reading in [Reading::Gone, other, Reading::Unusable("bad".to_owned())] {
        assert!(learn(vec![(0, reading)]).resources.is_empty());
    }
}

#[test]
fn a_file_that_is_gone_or_of_another_boot_withdraws_every_device() {
    let other = Reading::OtherBoot {
        file: "a".to_owned(),
        host: "b".to_owned(),
    };
    for reading in [Reading::Gone, other] {
        let known = learn(vec![(0, good(2)), (1, reading)]);
        assert_eq!(troubles(&known).len(), 2);
        assert!(
            troubles(&known)
                .iter()
                .all(|(_, trouble)| trouble.is_some())
        );
    }
}

#[test]
fn a_file_that_cannot_be_used_is_no_evidence_against_devices() {
    let known = learn(vec![(0, good(2)), (1, Reading::Unusable("bad".to_owned()))]);
    assert!(is_all_good(&known, 2));
    assert_eq!(known.problem.as_deref(), Some("bad"));
}

#[test]
fn a_bad_file_does_not_bring_withdrawn_devices_back() {
    let known = learn(vec![
        (0, good(2)),
        (1, Reading::Gone),
        (2, Reading::Unusable("bad".to_owned())),
    ]);
    assert!(
        troubles(&known)
            .iter()
            .all(|(_, trouble)| trouble.is_some())
    );
}

#[test]
fn a_good_file_heals_everything() {
    assert!(is_all_good(
        &learn(vec![(0, good(2)), (1, Reading::Gone), (2, good(2))]),
        2
    ));
    let unusable = Reading::Unusable("bad".to_owned());
    let known = learn(vec![(0, good(2)), (1, unusable), (2, good(2))]);
    assert_eq!((is_all_good(&known, 2), known.problem), (true, None));
}

#[test]
fn a_device_that_leaves_the_file_stays_unhealthy_for_the_quiet_time() {
    let known = learn(vec![(0, good(3)), (10, good(2)), (100, good(2))]);
    let last = troubles(&known).pop().unwrap();
    assert_eq!(
        last,
        (sample::id(2), Some("no longer in the node file".to_owned()))
    );
    assert_eq!(troubles(&known.clone().forget(s(309), QUIET)).len(), 3);
    assert_eq!(troubles(&known.forget(s(310), QUIET)).len(), 2);
}

#[test]
fn a_retired_device_that_comes_back_is_as_new() {
    let known = learn(vec![(0, good(3)), (10, good(2)), (20, good(3))]);
    assert!(is_all_good(&known, 3));
    assert!(is_all_good(&known.forget(s(1000), QUIET), 3));
}

#[test]
fn a_resource_that_leaves_the_file_is_closed_at_once() {
    let mut without = sample::node_file(2);
    without.resources.clear();
    let known = learn(vec![(0, good(2)), (10, Reading::Good(Box::new(without)))]);
    assert!(known.resources.is_empty());
}

#[test]
fn a_device_that_is_not_admitted_says_why() {
    let mut file = sample::node_file(1);
    file.resources[0].devices[0].admitted = false;
    file.resources[0].devices[0].reason = "held by nvidia.com/gpu".to_owned();
    let known = learn(vec![(0, Reading::Good(Box::new(file)))]);
    assert_eq!(
        troubles(&known)[0].1.as_deref(),
        Some("not admitted: held by nvidia.com/gpu")
    );
}
