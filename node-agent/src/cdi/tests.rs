use super::*;

const UUID: &str = "GPU-aaaaaaaa-0000-0000-0000-000000000000";

fn nodes() -> Vec<String> {
    [
        "/dev/infiniband/uverbs0",
        "/dev/infiniband/rdma_cm",
        "/dev/nvidia0",
        "/dev/nvidiactl",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn file() -> String {
    pair_file("a")
}

#[test]
fn names_follow_the_grammar() {
    assert_eq!(qualified(UUID), format!("gpurdma.dev/pair={UUID}"));
    assert_eq!(name("0000:0c:00.0"), "0000:0c:00.0");
    assert_eq!(name("0000:0c:00.0/mlx5_1-3"), "0000:0c:00.0_mlx5_1-3");
    assert_eq!(name("../x/"), "x");
    assert_eq!(name("//"), "device");
}

/// Another implementation reads, checks and finds what we write.
#[test]
fn another_implementation_accepts_the_specification() {
    use container_device_interface::spec::read_spec;
    let dir = tempfile::tempdir().unwrap();
    let wanted = vec![
        device(UUID, nodes(), [file()]),
        device("0000:0c:00.0", [], [file()]),
    ];
    let spec = spec(wanted, None, |_| false).unwrap();
    let path = dir.path().join(FILE);
    std::fs::write(&path, serde_json::to_vec_pretty(&spec).unwrap()).unwrap();
    let read = read_spec(&path, 0).unwrap();
    assert_eq!(
        (read.get_vendor().as_str(), read.get_class().as_str()),
        ("gpurdma.dev", "pair")
    );
    assert_eq!(read.get_devices().len(), 2);
    assert!(read.get_device(UUID).is_some());
}

#[test]
fn old_devices_stay_while_they_are_in_use() {
    let before = spec(
        vec![
            device("old", nodes(), [file()]),
            device("idle", [], [file()]),
        ],
        None,
        |_| false,
    );
    let wanted = vec![device("new", nodes(), [file()])];
    let now = spec(wanted.clone(), before.as_ref(), |name| name == "old").unwrap();
    let names: Vec<_> = now.devices.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["new", "old"]);
    assert_eq!(
        spec(wanted, Some(&now), |_| false).unwrap().devices.len(),
        1
    );
    assert_eq!(spec(vec![], Some(&now), |_| false), None);
}

#[test]
fn same_input_in_any_order_is_the_same_text() {
    let mut reversed = nodes();
    reversed.reverse();
    let one = spec(
        vec![device("a", nodes(), [file()]), device("b", [], [file()])],
        None,
        |_| false,
    );
    let two = spec(
        vec![device("b", [], [file()]), device("a", reversed, [file()])],
        None,
        |_| false,
    );
    assert_eq!(one, two);
}
