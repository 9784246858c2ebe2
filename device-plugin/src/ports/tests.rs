use std::path::Path;

use super::*;
use crate::link::Seen;
use crate::sample;

fn write(root: &Path, rdma: &str, port: u32, state: &str) {
    let dir = root.join(format!("sys/class/infiniband/{rdma}/ports/{port}"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("state"), state).unwrap();
}

#[test]
fn reads_states_and_takes_a_missing_file_for_no_evidence() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "mlx5_0", 1, "4: ACTIVE\n");
    write(dir.path(), "mlx5_1", 1, "1: DOWN\n");
    let devices: Vec<_> = (0..3).map(|n| sample::device(n, 3)).collect();
    let seen = sweep(&Root::new(dir.path()), &wanted(devices.iter()));
    let states: Vec<Seen> = seen.into_values().collect();
    assert_eq!(states, [Seen::Up, Seen::Down, Seen::Unknown]);
}

fn wanted_ports(names: &[&str]) -> Wanted {
    names.iter().map(|name| ((*name).to_owned(), 1)).collect()
}

fn states(sightings: &Sightings) -> Vec<Seen> {
    sightings.values().copied().collect()
}

#[test]
fn a_sighting_counts_for_five_seconds() {
    let sight = Sight {
        began: Duration::from_secs(10),
        ports: [(1, Seen::Down)].into(),
    };
    let sights = [("mlx5_0".to_owned(), sight)].into();
    let at = |seconds| {
        let wanted = wanted_ports(&["mlx5_0", "mlx5_1"]);
        states(&current(&sights, &wanted, Duration::from_secs(seconds)))
    };
    assert_eq!(at(15), [Seen::Down, Seen::Unknown]);
    assert_eq!(at(16), [Seen::Unknown, Seen::Unknown]);
}

/// One NIC hangs, and then wakes up: the other is seen all the time, and no second look at the first is begun.
#[tokio::test]
async fn one_that_hangs_holds_up_nobody_else() {
    let (wake, asleep) = std::sync::mpsc::channel::<()>();
    let asleep = std::sync::Mutex::new(asleep);
    let looks = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = looks.clone();
    let look: Look = Arc::new(move |rdma, _| {
        if rdma == "mlx5_0" {
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let _ = asleep.lock().unwrap().recv();
        }
        Seen::Up
    });
    let mut watcher = Watcher::new(look);
    let wanted = wanted_ports(&["mlx5_0", "mlx5_1"]);
    let seen = |watcher: &Watcher| {
        let now = watcher.started.elapsed();
        states(&current(&watcher.sights, &wanted, now))
    };
    for _ in 0..3 {
        watcher.sights.clear();
        watcher.round(&wanted, Duration::from_secs(1)).await;
        assert_eq!(seen(&watcher), [Seen::Unknown, Seen::Up]);
    }
    assert_eq!(looks.load(std::sync::atomic::Ordering::SeqCst), 1);
    wake.send(()).unwrap();
    while seen(&watcher) != [Seen::Up, Seen::Up] {
        watcher.round(&wanted, Duration::from_secs(1)).await;
    }
    drop(wake);
}

/// More NICs hang than there are threads in a round: the others are seen a round later.
#[tokio::test]
async fn many_that_hang_hold_up_the_others_for_rounds_only() {
    let (wake, asleep) = std::sync::mpsc::channel::<()>();
    let asleep = std::sync::Mutex::new(asleep);
    let look: Look = Arc::new(move |rdma, _| {
        if rdma != "mlx5_9" {
            let _ = asleep.lock().unwrap().recv();
        }
        Seen::Up
    });
    let mut watcher = Watcher::new(look);
    let names: Vec<String> = (0..10).map(|n| format!("mlx5_{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted = wanted_ports(&names);
    for _ in 0..names.len().div_ceil(LANES) {
        watcher.round(&wanted, Duration::from_millis(200)).await;
    }
    assert_eq!(watcher.sights.keys().collect::<Vec<_>>(), ["mlx5_9"]);
    assert_eq!(watcher.under_way.len(), 9);
    drop(wake);
}

#[tokio::test]
async fn a_watch_tells_what_it_sees() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "mlx5_0", 1, "4: ACTIVE\n");
    let (_want, wanted) = watch::channel(Arc::new(wanted_ports(&["mlx5_0"])));
    let (tell, mut told) = watch::channel(Arc::new(Sightings::new()));
    let look = looking_at(Root::new(dir.path()));
    tokio::spawn(super::watch(look, Duration::from_millis(5), wanted, tell));
    told.wait_for(|seen| states(seen) == [Seen::Up])
        .await
        .unwrap();
    write(dir.path(), "mlx5_0", 1, "1: DOWN\n");
    told.wait_for(|seen| states(seen) == [Seen::Down])
        .await
        .unwrap();
}
