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
