use super::*;
use crate::evidence::SocketId;
use crate::podresources::KubeletDevices;

const UUID: &str = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
const NAME: &str = "nvidia.com/gpu";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// An answer of a kubelet that started at `start`.
fn answer(start: i64, now: i64) -> Evidence {
    let socket = SocketId {
        device: 1,
        inode: 2,
        changed: at(start),
    };
    let sockets = [Some(socket.clone()), Some(socket)];
    Evidence::answered(KubeletDevices::default(), sockets, None, at(now))
}

fn seen() -> Seen {
    let of_resource = BTreeMap::from([(NAME.to_owned(), None)]);
    BTreeMap::from([(UUID.to_owned(), of_resource)])
}

/// Whether the advertiser is remembered after the kubelet of `start` did not show it at these times.
fn after(start: i64, times: &[i64]) -> bool {
    let mut memory = ForeignMemory::default().step(&seen(), &answer(0, 0), at(0));
    for &now in times {
        memory = memory.step(&Seen::new(), &answer(start, now), at(now));
    }
    !memory.is_empty()
}

#[test]
fn an_advertiser_is_forgotten_after_six_minutes_of_proved_absence() {
    assert!(after(0, &[100]));
    assert!(after(0, &[1000]), "one answer is no span of time");
    assert!(after(0, &[100, 459]));
    assert!(!after(0, &[100, 460]));
    assert!(!after(0, &[100, 200, 300, 460]));
}

#[test]
fn a_young_kubelet_and_silence_count_for_nothing() {
    assert!(after(1000, &[1000, 1059, 1060, 1419]));
    assert!(!after(1000, &[1000, 1059, 1060, 1420]));
    let known = ForeignMemory::default().step(&seen(), &answer(0, 0), at(0));
    let silent = Evidence::silent("down");
    let silent_for = |now| known.step(&Seen::new(), &silent, at(now));
    assert_eq!(
        (silent_for(100), silent_for(900)),
        (known.clone(), known.clone())
    );
    let absent = known.step(&Seen::new(), &answer(0, 100), at(100));
    assert_eq!(absent.step(&Seen::new(), &silent, at(900)), absent);
}

#[test]
fn another_kubelet_a_return_and_an_older_clock_start_the_wait_again() {
    let start = ForeignMemory::default().step(&seen(), &answer(0, 0), at(0));
    let absent = start.step(&Seen::new(), &answer(0, 100), at(100));
    assert_eq!(absent.step(&seen(), &answer(0, 110), at(110)), start);
    let other = absent.step(&Seen::new(), &answer(500, 600), at(600));
    assert!(
        !other
            .step(&Seen::new(), &answer(500, 959), at(959))
            .is_empty()
    );
    assert!(
        other
            .step(&Seen::new(), &answer(500, 960), at(960))
            .is_empty()
    );
    let back = absent.step(&Seen::new(), &answer(-200, 50), at(50));
    assert_ne!(back, absent);
}

#[test]
fn it_survives_its_file() {
    let memory = ForeignMemory::default().step(&seen(), &answer(0, 0), at(0));
    let memory = memory.step(&Seen::new(), &answer(0, 100), at(100));
    let text = serde_json::to_string(&memory).unwrap();
    let read: ForeignMemory = serde_json::from_str(&text).unwrap();
    assert_eq!(read, memory);
    let entries: Vec<_> = read.entries().collect();
    assert_eq!(entries, [(&NAME.to_owned(), &UUID.to_owned())]);
}
