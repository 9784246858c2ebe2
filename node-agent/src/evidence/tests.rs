use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn socket(changed: i64) -> SocketId {
    SocketId {
        device: 1,
        inode: 2,
        changed: at(changed),
    }
}

fn answer(sockets: [Option<SocketId>; 2], watched: Option<&(SocketId, Timestamp)>) -> Evidence {
    Evidence::answered(KubeletDevices::default(), sockets, watched, at(100))
}

fn proves_absence(of: SocketId, watched: Option<&(SocketId, Timestamp)>) -> bool {
    let evidence = answer([Some(of.clone()), Some(of)], watched);
    assert!(evidence.shown().is_some());
    evidence.complete().is_some()
}

#[test]
fn a_kubelet_proves_absence_a_minute_after_its_start() {
    assert!(!proves_absence(socket(41), None));
    assert!(proves_absence(socket(40), None));
}

#[test]
fn a_socket_of_the_future_counts_from_when_it_was_seen() {
    assert!(!proves_absence(socket(5000), None));
    assert!(!proves_absence(socket(5000), Some(&(socket(5000), at(41)))));
    assert!(proves_absence(socket(5000), Some(&(socket(5000), at(40)))));
    assert!(!proves_absence(socket(5000), Some(&(socket(4000), at(0)))));
}

#[test]
fn a_kubelet_that_changed_while_it_answered_proves_no_absence() {
    for sockets in [
        [Some(socket(0)), Some(socket(1))],
        [Some(socket(0)), None],
        [None, Some(socket(0))],
    ] {
        let evidence = answer(sockets, None);
        assert!(evidence.complete().is_none() && evidence.socket().is_none());
    }
}

#[test]
fn silence_proves_nothing() {
    let silent = Evidence::silent("down");
    assert_eq!((silent.shown(), silent.complete()), (None, None));
    assert_eq!(silent.silence(), Some("down"));
}
