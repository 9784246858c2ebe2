use std::fs;
use std::path::PathBuf;

use super::*;

struct Host {
    dir: tempfile::TempDir,
    owners: Owners,
}

impl Host {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let owners = Owners::new(Root::new(dir.path()));
        Self { dir, owners }
    }

    fn verbs(&self, number: u32) -> PathBuf {
        let below = format!("sys/class/infiniband_verbs/uverbs{number}");
        self.dir.path().join(below)
    }

    fn belongs_to(&self, number: u32, rdma: &str) {
        fs::create_dir_all(self.verbs(number)).unwrap();
        fs::write(self.verbs(number).join("ibdev"), format!("{rdma}\n")).unwrap();
    }

    fn owner(&self, number: u32) -> Option<String> {
        self.owners.owner(number).rdma.known().cloned()
    }
}

#[test]
fn a_new_name_and_a_new_device_are_seen_at_once() {
    let host = Host::new();
    assert_eq!(host.owner(0), None);
    host.belongs_to(0, "mlx5_0");
    for _ in 0..2 {
        assert_eq!(host.owner(0).as_deref(), Some("mlx5_0"));
    }
    host.belongs_to(0, "rocep12s0");
    assert_eq!(host.owner(0).as_deref(), Some("rocep12s0"), "renamed");
    fs::remove_dir_all(host.verbs(0)).unwrap();
    assert_eq!(host.owner(0), None, "gone");
    host.belongs_to(0, "mlx5_7");
    assert_eq!(host.owner(0).as_deref(), Some("mlx5_7"), "another one");
}

#[test]
fn no_more_files_are_held_than_there_may_be() {
    let host = Host::new();
    let all = 0..u32::try_from(HELD).unwrap() + 3;
    for number in all.clone() {
        host.belongs_to(number, &format!("mlx5_{number}"));
    }
    for _ in 0..2 {
        for number in all.clone() {
            assert_eq!(host.owner(number), Some(format!("mlx5_{number}")));
        }
    }
    assert_eq!(host.owners.with(|held| held.len()), HELD);
}
