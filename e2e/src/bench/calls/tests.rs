use super::*;

#[test]
fn each_call_asks_for_other_devices_each_of_them_once() {
    let ids: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(window(&ids, 0, 2), ["a", "b"]);
    assert_eq!(window(&ids, 2, 2), ["c", "a"]);
    assert_eq!(window(&ids, 4, 3), ["b", "c", "a"]);
    assert_eq!(window(&ids, 1, 4), ["b", "c", "a"]);
    assert!(window(&[], 3, 1).is_empty());
}
