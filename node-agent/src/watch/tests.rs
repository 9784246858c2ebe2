use std::time::Duration;

use super::*;

/// Whether a change is told; nothing but one is waited for long.
async fn told(devices: &mut Devices, within: Duration) -> bool {
    let changed = tokio::time::timeout(within, devices.changed());
    changed.await.is_ok()
}

#[tokio::test]
async fn only_a_change_of_devices_is_told() {
    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(50);
    let machine = tempfile::tempdir().unwrap();
    let root = Root::new(machine.path());
    let mut devices = Devices::watch(root, Duration::from_millis(1)).unwrap();
    assert!(!told(&mut devices, SHORT).await, "the first look");
    let device = machine.path().join("sys/class/infiniband_verbs/uverbs0");
    std::fs::create_dir_all(&device).unwrap();
    assert!(told(&mut devices, LONG).await);
    while told(&mut devices, SHORT).await {}
    std::fs::rename(&device, device.with_file_name("uverbs1")).unwrap();
    assert!(told(&mut devices, LONG).await);
    while told(&mut devices, SHORT).await {}
    assert!(!devices.hang());
}

#[tokio::test]
async fn what_is_removed_of_ours_and_what_others_write_is_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::new(Root::new(directory.path()));
    let facts = Arc::<Facts>::default();
    let node_file = directory.path().join("run/gpurdma/node.json");
    let openib = directory.path().join("etc/infiniband/openib.conf");
    let specification = directory.path().join("var/run/cdi/nvidia.yaml");
    for file in [&node_file, &openib, &specification] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "{}").unwrap();
    }
    let mut host = HostSettings::default();
    assert!(!host.changed(&settings, facts.clone()).await);
    assert!(!host.changed(&settings, facts.clone()).await);
    std::fs::remove_file(node_file).unwrap();
    assert!(host.changed(&settings, facts.clone()).await);
    std::fs::write(openib, "ONBOOT=yes\n").unwrap();
    assert!(host.changed(&settings, facts.clone()).await);
    std::fs::write(specification, "kind: nvidia.com/gpu\n").unwrap();
    assert!(host.changed(&settings, facts.clone()).await);
    assert!(!host.changed(&settings, facts.clone()).await);
}
