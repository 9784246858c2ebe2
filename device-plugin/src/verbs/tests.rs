use super::*;
use crate::sample;

fn owner(rdma: Fact<&str>, pci: Fact<&str>) -> impl FnOnce(u32) -> VerbsOwner {
    let owner = VerbsOwner {
        rdma: rdma.map(str::to_owned),
        pci: pci.map(|pci| pci.parse().unwrap()),
    };
    move |_| owner
}

fn judged(rdma: Fact<&str>, pci: Fact<&str>) -> Owned {
    let nic = &sample::device(3, 8).nics[0];
    judge(nic, owner(rdma, pci))
}

const OWN: &str = "0000:43:00.0";
const OTHER: &str = "0000:44:00.0";

fn unreadable() -> Fact<&'static str> {
    Fact::Unreadable("denied".to_owned())
}

#[test]
fn the_own_one_has_the_name_and_the_place() {
    assert_eq!(judged(Fact::Known("mlx5_3"), Fact::Known(OWN)), Owned::Own);
    assert_eq!(
        judged(Fact::Known("mlx5_3"), Fact::Absent),
        Owned::Own,
        "software devices have no place"
    );
}

#[test]
fn another_name_or_another_place_is_another_device_and_both_are_named() {
    let text = "/dev/infiniband/uverbs3 belongs to mlx5_4 (0000:44:00.0) now, and to mlx5_3 (0000:43:00.0) in the node file";
    match judged(Fact::Known("mlx5_4"), Fact::Known(OTHER)) {
        Owned::Others(why) => assert!(why.starts_with(text), "{why}"),
        other => panic!("{other:?}"),
    }
    for (rdma, pci) in [
        (Fact::Known("mlx5_3"), Fact::Known(OTHER)),
        (Fact::Known("mlx5_4"), Fact::Known(OWN)),
        (unreadable(), Fact::Known(OTHER)),
        (Fact::Known("mlx5_4"), unreadable()),
    ] {
        let judged = judged(rdma, pci);
        assert!(matches!(judged, Owned::Others(_)), "{judged:?}");
    }
}

#[test]
fn what_cannot_be_told_is_no_evidence() {
    assert_eq!(judged(Fact::Absent, Fact::Absent), Owned::Unknown);
    assert_eq!(judged(unreadable(), unreadable()), Owned::Unknown);
    assert_eq!(judged(Fact::Known("mlx5_3"), unreadable()), Owned::Unknown);
    let mut nic = sample::device(3, 8).nics.remove(0);
    nic.uverbs = None;
    let others = owner(Fact::Known("mlx5_4"), Fact::Known(OTHER));
    assert_eq!(judge(&nic, others), Owned::Unknown);
}
