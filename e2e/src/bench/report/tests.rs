use super::*;

#[test]
fn numbers_have_three_digits_that_tell_something() {
    let shown = [0.0314, 0.5, 1.234, 12.34, 1234.5].map(number);
    assert_eq!(shown, ["0.031", "0.500", "1.23", "12.3", "1234"]);
}

#[test]
fn the_slowest_number_of_devices_is_that_of_the_highest_median() {
    let calls = |size, p50| OfSize {
        size,
        time: Some(Summary {
            count: 1,
            p50,
            p99: 9.0,
            max: 9.0,
        }),
    };
    let failed = OfSize {
        size: 4,
        time: None,
    };
    let slowest = slowest(&[calls(1, 0.1), calls(2, 0.3), calls(3, 0.2), failed]).unwrap();
    assert!((slowest.p50 - 0.3).abs() < f64::EPSILON);
}

#[test]
fn memory_is_shown_in_mebibytes() {
    assert_eq!(mib(8 * 1024), "8.0 MiB");
    assert_eq!(mib(2765), "2.7 MiB");
}
