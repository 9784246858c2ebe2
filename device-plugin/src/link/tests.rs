use proptest::prelude::*;

use super::*;
use crate::sample;

const PATIENCE: Patience = Patience {
    hold_down: Duration::from_secs(30),
    stable_up: Duration::from_mins(1),
};

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Steps through (second, observation) and returns whether the device was down after each.
fn walk(looks: &[(u64, Seen)]) -> Vec<bool> {
    let mut link = Link::default();
    let step = |(at, seen): &(u64, Seen)| {
        link = link.step(*seen, s(*at), PATIENCE);
        link.is_down()
    };
    looks.iter().map(step).collect()
}

#[test]
fn table_of_steps() {
    use Link::{Down as D, Falling, Rising, Up as U};
    let falling = |at| Falling { since: s(at) };
    let rising = |at| Rising { since: s(at) };
    let table = [
        (U, Seen::Up, 5, U),
        (U, Seen::Unknown, 5, U),
        (U, Seen::Down, 5, falling(5)),
        (falling(5), Seen::Down, 34, falling(5)),
        (falling(5), Seen::Down, 35, D),
        (falling(5), Seen::Up, 34, U),
        (falling(5), Seen::Unknown, 34, U),
        (D, Seen::Down, 99, D),
        (D, Seen::Unknown, 99, D),
        (D, Seen::Up, 99, rising(99)),
        (rising(99), Seen::Up, 158, rising(99)),
        (rising(99), Seen::Up, 159, U),
        (rising(99), Seen::Down, 158, D),
        (rising(99), Seen::Unknown, 158, D),
    ];
    for (before, seen, at, after) in table {
        assert_eq!(
            before.step(seen, s(at), PATIENCE),
            after,
            "{before:?} sees {seen:?} at {at}"
        );
    }
}

#[test]
fn a_flap_shorter_than_the_hold_down_is_not_seen() {
    assert_eq!(
        walk(&[
            (0, Seen::Down),
            (29, Seen::Down),
            (30, Seen::Up),
            (31, Seen::Down),
            (60, Seen::Down)
        ]),
        [false; 5]
    );
}

#[test]
fn a_link_that_comes_up_must_stay_up() {
    let looks = [
        (0, Seen::Down),
        (30, Seen::Down),
        (40, Seen::Up),
        (99, Seen::Up),
        (100, Seen::Up),
    ];
    assert_eq!(walk(&looks), [false, true, true, true, false]);
}

#[test]
fn without_patience_each_look_counts() {
    let none = Patience {
        hold_down: Duration::ZERO,
        stable_up: Duration::ZERO,
    };
    let down = Link::Up.step(Seen::Down, s(1), none);
    assert_eq!(
        (down, down.step(Seen::Up, s(2), none)),
        (Link::Down, Link::Up)
    );
}

#[test]
fn a_clock_that_stands_before_the_start_of_a_wait_ends_nothing() {
    assert_eq!(
        Link::Falling { since: s(50) }.step(Seen::Down, s(10), PATIENCE),
        Link::Falling { since: s(50) }
    );
}

#[test]
fn only_an_active_port_is_up_and_an_unreadable_one_is_not_down() {
    let table = [
        (Fact::Known(PortState::Active), Seen::Up),
        (Fact::Known(PortState::ActiveDefer), Seen::Up),
        (Fact::Known(PortState::Down), Seen::Down),
        (Fact::Known(PortState::Init), Seen::Down),
        (Fact::Known(PortState::Armed), Seen::Down),
        (Fact::Absent, Seen::Unknown),
        (Fact::Unreadable("denied".to_owned()), Seen::Unknown),
    ];
    for (state, seen) in table {
        assert_eq!(port(&state), seen, "{state:?}");
    }
}

fn two_by_two() -> NodeDevice {
    let mut device = sample::device(0, 1);
    device.nics[0].ports = vec![1, 2];
    let mut second = device.nics[0].clone();
    second.rdma = "mlx5_9".to_owned();
    device.nics.push(second);
    device
}

fn sightings(states: [Seen; 4]) -> Sightings {
    let keys = [("mlx5_0", 1), ("mlx5_0", 2), ("mlx5_9", 1), ("mlx5_9", 2)];
    keys.into_iter()
        .map(|(rdma, port)| (rdma.to_owned(), port))
        .zip(states)
        .collect()
}

#[test]
fn one_cabled_port_keeps_a_nic_up_and_one_dead_nic_takes_the_device_down() {
    use Seen::{Down as D, Unknown as N, Up as U};
    let table = [
        ([U, D, U, D], U),
        ([U, U, D, D], D),
        ([D, D, N, N], D),
        ([U, D, D, N], N),
        ([D, N, U, U], N),
        ([N, N, N, N], N),
    ];
    for (states, seen) in table {
        assert_eq!(
            device(&two_by_two(), &sightings(states)),
            seen,
            "{states:?}"
        );
    }
}

#[test]
fn a_device_without_nics_or_ports_shows_nothing() {
    let mut pair = sample::device(0, 1);
    pair.nics[0].ports.clear();
    assert_eq!(device(&pair, &Sightings::new()), Seen::Unknown);
    pair.nics.clear();
    assert_eq!(device(&pair, &Sightings::new()), Seen::Unknown);
}

/// Whether every look of the last `wait` seconds, and one that is so old, showed the same.
fn lasted(looks: &[(u64, Seen)], seen: Seen, wait: Duration) -> bool {
    let (now, _) = looks[looks.len() - 1];
    let same = looks.iter().rev().take_while(|(_, other)| *other == seen);
    same.last().is_some_and(|(first, _)| s(now - first) >= wait)
}

proptest! {
    /// Whatever a port does: its device changes exactly when the same was seen throughout the whole wait.
    #[test]
    fn nothing_changes_but_after_a_wait_without_a_break(
        looks in proptest::collection::vec(
            (0..40_u64, prop_oneof![4 => Just(Seen::Down), 4 => Just(Seen::Up), 1 => Just(Seen::Unknown)]),
            1..60,
        ),
    ) {
        let (mut link, mut at, mut seen) = (Link::default(), 0, Vec::new());
        for (pause, look) in looks {
            at += pause;
            seen.push((at, look));
            let was_down = link.is_down();
            link = link.step(look, s(at), PATIENCE);
            let expected = if was_down {
                !lasted(&seen, Seen::Up, PATIENCE.stable_up)
            } else {
                lasted(&seen, Seen::Down, PATIENCE.hold_down)
            };
            prop_assert_eq!(link.is_down(), expected, "{:?}", seen);
        }
    }
}
