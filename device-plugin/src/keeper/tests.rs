use host::root::Root;

use super::*;
use crate::link::Seen;
use crate::sample;

mod life;

/// A keeper over files of its own, driven by hand.
struct Bench {
    dir: tempfile::TempDir,
    keeper: Keeper,
    sight: watch::Sender<Arc<Sightings>>,
    wanted: watch::Receiver<Arc<Wanted>>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    _beat: watch::Sender<u64>,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("boot_id"), format!("{}\n", sample::BOOT)).unwrap();
    bench_in(dir)
}

/// A keeper that knows nothing yet.
fn bench_in(dir: tempfile::TempDir) -> Bench {
    let source = Source {
        node_file: dir.path().join("node.json"),
        boot_id_file: dir.path().join("boot_id"),
    };
    let (beat, pulses) = watch::channel(0);
    let (sight, sightings) = watch::channel(Arc::new(Sightings::new()));
    let (want, wanted) = watch::channel(Arc::new(Wanted::new()));
    let (snapshot, snapshots) = watch::channel(Arc::new(Snapshot::default()));
    let wires = Wires {
        pulses,
        sightings,
        wanted: want,
        snapshots: snapshot,
    };
    Bench {
        keeper: Keeper::new(
            source,
            Arc::new(Owners::new(Root::new(dir.path()))),
            Duration::from_mins(5),
            wires,
        ),
        dir,
        sight,
        wanted,
        snapshots,
        _beat: beat,
    }
}

impl Bench {
    fn write(&self, file: &topology::node_file::NodeFile) {
        std::fs::write(self.dir.path().join("node.json"), file.to_json()).unwrap();
    }

    fn owner(&self, number: u32, rdma: &str) {
        let verbs = format!("sys/class/infiniband_verbs/uverbs{number}");
        let verbs = self.dir.path().join(verbs);
        std::fs::create_dir_all(&verbs).unwrap();
        std::fs::write(verbs.join("ibdev"), rdma).unwrap();
    }

    fn see(&self, rdma: &str, seen: Seen) {
        self.sight
            .send_replace(Arc::new(Sightings::from([((rdma.to_owned(), 1), seen)])));
    }

    /// Turns once.
    fn run(&mut self, at: u64) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.build().unwrap();
        runtime.block_on(self.keeper.turn(Duration::from_secs(at)));
    }

    /// Turns once and returns the ids in trouble, if something was published.
    fn turn(&mut self, at: u64) -> Option<Vec<String>> {
        self.run(at);
        if !self.snapshots.has_changed().unwrap() {
            return None;
        }
        let snapshot = self.snapshots.borrow_and_update().clone();
        let resource = snapshot.resource(sample::RESOURCE)?;
        Some(resource.troubles().keys().cloned().collect())
    }
}

#[test]
fn publishes_only_what_differs() {
    let mut bench = bench();
    assert_eq!(bench.turn(0), None, "no file, nothing to say");
    bench.write(&sample::node_file(2));
    assert_eq!(bench.turn(1), Some(Vec::new()));
    assert_eq!(bench.turn(2), None);
    let mut newer = sample::node_file(2);
    newer.generation = 9;
    bench.write(&newer);
    assert_eq!(bench.turn(3), None, "the devices are the same");
}

#[test]
fn asks_for_the_ports_of_its_devices() {
    let mut bench = bench();
    bench.write(&sample::node_file(2));
    bench.turn(0);
    let wanted: Vec<(String, u32)> = bench.wanted.borrow_and_update().iter().cloned().collect();
    assert_eq!(wanted, [("mlx5_0".to_owned(), 1), ("mlx5_1".to_owned(), 1)]);
}

#[test]
fn a_port_that_stays_down_turns_its_device_unhealthy_and_back() {
    let mut bench = bench();
    bench.write(&sample::node_file(2));
    bench.turn(0);
    bench.see("mlx5_1", Seen::Down);
    assert_eq!((bench.turn(1), bench.turn(30)), (None, None));
    assert_eq!(bench.turn(31), Some(sample::ids(&[1])));
    bench.see("mlx5_1", Seen::Up);
    assert_eq!((bench.turn(40), bench.turn(99)), (None, None));
    assert_eq!(bench.turn(100), Some(Vec::new()));
}

/// The switch restarts its ports over and over for an hour: on every node alike, so what happens to one happens to all.
#[test]
fn a_storm_of_flaps_takes_no_device_off_and_an_outage_does() {
    let mut bench = bench();
    bench.write(&sample::node_file(4));
    assert_eq!(bench.turn(0), Some(Vec::new()));
    let see_all = |bench: &Bench, seen| {
        let all = (0..4).map(|n| ((format!("mlx5_{n}"), 1), seen));
        bench.sight.send_replace(Arc::new(all.collect()));
    };
    for second in 1..3600 {
        let down = second % 40 < 29;
        see_all(&bench, if down { Seen::Down } else { Seen::Up });
        assert_eq!(bench.turn(second), None, "at {second} s");
    }
    see_all(&bench, Seen::Down);
    assert_eq!((bench.turn(3600), bench.turn(3629)), (None, None));
    assert_eq!(bench.turn(3630), Some(sample::ids(&[0, 1, 2, 3])));
    // And back only once it is over: nobody gets a port that is up for half a minute.
    for second in 3631..7200 {
        let up = second % 60 < 50;
        see_all(&bench, if up { Seen::Up } else { Seen::Down });
        assert_eq!(bench.turn(second), None, "at {second} s");
    }
    see_all(&bench, Seen::Up);
    assert_eq!((bench.turn(7200), bench.turn(7259)), (None, None));
    assert_eq!(bench.turn(7260), Some(Vec::new()));
}

#[test]
fn a_port_does_not_count_where_the_gpu_is_kept() {
    let mut bench = bench();
    let mut file = sample::node_file(2);
    file.resources[0].unhealthy_on_nic_down = false;
    bench.write(&file);
    bench.turn(0);
    bench.see("mlx5_1", Seen::Down);
    assert_eq!((bench.turn(1), bench.turn(1000)), (None, None));
}

#[test]
fn a_config_change_keeps_what_is_known_of_the_links() {
    let mut bench = bench();
    bench.write(&sample::node_file(2));
    bench.turn(0);
    bench.see("mlx5_1", Seen::Down);
    bench.turn(1);
    assert_eq!(bench.turn(31), Some(sample::ids(&[1])));
    let mut file = sample::node_file(2);
    file.resources[0].envs.clear();
    bench.write(&file);
    assert_eq!(bench.turn(32), Some(sample::ids(&[1])));
}

#[test]
fn a_broken_file_changes_nothing_and_a_missing_one_everything() {
    let mut bench = bench();
    bench.write(&sample::node_file(2));
    bench.turn(0);
    std::fs::write(bench.dir.path().join("node.json"), "{").unwrap();
    assert_eq!(bench.turn(1), None);
    std::fs::remove_file(bench.dir.path().join("node.json")).unwrap();
    assert_eq!(bench.turn(2), Some(sample::ids(&[0, 1])));
}

#[test]
fn a_device_node_that_is_another_ones_now_is_unhealthy_until_it_is_right() {
    let mut bench = bench();
    bench.write(&sample::node_file(2));
    bench.owner(1, "mlx5_1");
    assert_eq!(bench.turn(0), Some(Vec::new()));
    bench.owner(1, "mlx5_0");
    assert_eq!(bench.turn(1), Some(sample::ids(&[1])));
    // Nobody can tell for a while: it is still the other's.
    std::fs::remove_dir_all(bench.dir.path().join("sys")).unwrap();
    assert_eq!(bench.turn(2), None);
    let mut right = sample::node_file(2);
    right.resources[0].devices[1].nics[0].uverbs = Some(5);
    bench.write(&right);
    assert_eq!(bench.turn(3), Some(Vec::new()), "a new file, at once");
    bench.owner(5, "mlx5_7");
    assert_eq!(bench.turn(4), Some(sample::ids(&[1])));
    bench.owner(5, "mlx5_1");
    assert_eq!(bench.turn(5), Some(Vec::new()), "the numbers came back");
}
