use super::super::calls::OfSize;
use super::super::contestant::Memory;
use super::*;

fn time(p50: f64) -> Summary {
    Summary {
        count: 10,
        p50,
        p99: 2.0 * p50,
        max: 3.0 * p50,
    }
}

fn figures(name: &str, scale: f64) -> Figures {
    let calls = |size: usize| OfSize {
        size,
        time: Some(time(0.05 * scale)),
    };
    Figures {
        name: name.to_owned(),
        resource: "rdma/gpudirect".to_owned(),
        devices: 8,
        exec_to_register: Some(time(3.0 * scale)),
        dial_to_list: Some(time(scale)),
        register_again: Some(time(scale)),
        idle: Memory {
            rss: 5000,
            ..Memory::default()
        },
        after_calls: Memory {
            rss: 6000,
            ..Memory::default()
        },
        allocate: (1..=8).map(calls).collect(),
        preferred: (1..=8).map(calls).collect(),
        reads_at_start: Some(Reads {
            files: 2,
            time: Some(time(1.0)),
        }),
        reads_at_allocate: None,
    }
}

fn on(gpus: usize, functions: usize, scale: f64) -> OnMachine {
    OnMachine {
        shape: Shape::new(gpus, functions),
        figures: vec![figures("device-plugin", scale), figures("floor", 1.0)],
    }
}

fn missed(goals: &[Goal]) -> Vec<&str> {
    let missed = goals.iter().filter(|goal| !goal.is_met());
    missed.map(|goal| goal.what.as_str()).collect()
}

#[test]
fn the_floor_is_the_empty_service_and_the_bare_reads() {
    let goals = goals(&[on(8, 8, 2.5)], Some(4_000_000), None, &[]);
    let start = goals
        .iter()
        .find(|goal| goal.what == "exec → Register / floor")
        .unwrap();
    assert!((start.here - 7.5 / 4.0).abs() < 1e-9, "{start:?}");
    assert_eq!(
        missed(&goals),
        [
            "Allocate / floor, worst size, p50",
            "Allocate, worst size, p99 ms"
        ]
    );
}

#[test]
fn each_device_of_an_allocate_adds_its_part_of_the_bare_reads() {
    let (mut own, floor) = (figures("device-plugin", 1.0), figures("floor", 1.0));
    own.reads_at_allocate = Some(Reads {
        files: 8,
        time: Some(time(0.05)),
    });
    assert_eq!(allocate_over(&own, &floor, 8), Some(0.5));
    let one = allocate_over(&own, &floor, 1).unwrap();
    assert!((one - 0.05 / 0.05625).abs() < 1e-9, "{one}");
    assert_eq!(allocate_over(&own, &floor, 9), None);
}

#[test]
fn many_functions_are_held_against_few() {
    let machines = [
        on(8, 8, 1.0),
        on(8, 968, 1.5),
        on(16, 8, 1.0),
        on(16, 968, 2.1),
    ];
    let expected = [
        "preferred of 16 pairs, slowest size, p50 ms",
        "968 functions: Allocate / Allocate at 8",
    ];
    assert_eq!(missed(&goals(&machines, None, None, &[])), expected);
}

#[test]
fn what_was_not_measured_has_no_goal() {
    assert_eq!(goals(&[], None, None, &[]), []);
}
