use std::cmp::Ordering;

use super::{deepest_function, field, hex, natural};

#[test]
fn names_sort_as_people_count() {
    let mut names = [
        "mlx5_10",
        "mlx5_2",
        "rocep8s0",
        "mlx5_bond_0",
        "mlx5_1",
        "mlx4_0",
        "rocep145s0",
        "mlx5_01",
    ];
    names.sort_by(|a, b| natural(a, b));
    assert_eq!(
        names,
        [
            "mlx4_0",
            "mlx5_01",
            "mlx5_1",
            "mlx5_2",
            "mlx5_10",
            "mlx5_bond_0",
            "rocep8s0",
            "rocep145s0"
        ]
    );
    assert_eq!(natural("a1", "a1"), Ordering::Equal);
    assert_eq!(
        natural("x99999999999999999999998", "x99999999999999999999999"),
        Ordering::Less
    );
}

#[test]
fn hex_takes_what_sysfs_prints_and_nothing_else() {
    assert_eq!(hex::<u16>("0x15b3"), Some(0x15b3));
    assert_eq!(hex::<u32>("060400"), Some(0x06_04_00));
    for text in ["", "0x", "0x15b3f", "-1", "+1", "0xzz", "0x 1"] {
        assert_eq!(hex::<u16>(text), None, "{text}");
    }
}

#[test]
fn the_deepest_function_counts() {
    let path = "/sys/devices/pci0000:00/0000:00:01.0/0000:0c:00.1/mlx5_core.sf.2/infiniband/mlx5_4";
    assert_eq!(deepest_function(path).unwrap().to_string(), "0000:0c:00.1");
    assert_eq!(deepest_function("/sys/devices/virtual/net/lo"), None);
}

#[test]
fn a_field_is_found_by_its_whole_key() {
    let text = "Model: \t NVIDIA H100\nDevice Minor: \t 3\n";
    assert_eq!(field(text, "Device Minor"), Some("3"));
    assert_eq!(field(text, "Minor"), None);
}
