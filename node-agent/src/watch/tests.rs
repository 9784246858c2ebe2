use host::root::Root;

use super::*;

#[tokio::test]
async fn only_a_change_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::new(Root::new(directory.path()));
    let facts = Arc::<Facts>::default();
    let mut watch = Watch::default();
    assert!(
        !watch.devices_changed(&settings, facts.clone()).await,
        "the first look"
    );
    assert!(!watch.devices_changed(&settings, facts.clone()).await);
    let device = directory.path().join("sys/class/infiniband_verbs/uverbs0");
    std::fs::create_dir_all(&device).unwrap();
    assert!(watch.devices_changed(&settings, facts.clone()).await);
    assert!(!watch.devices_changed(&settings, facts.clone()).await);
    std::fs::rename(&device, device.with_file_name("uverbs1")).unwrap();
    assert!(watch.devices_changed(&settings, facts.clone()).await);
    assert!(!watch.devices_changed(&settings, facts.clone()).await);
}

#[tokio::test]
async fn what_is_removed_of_ours_and_what_others_write_is_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::new(Root::new(directory.path()));
    let facts = Arc::<Facts>::default();
    let node_file = directory.path().join("run/gpurdma/node.json");
    let openib = directory.path().join("etc/infiniband/openib.conf");
    for file in [&node_file, &openib] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "{}").unwrap();
    }
    let mut watch = Watch::default();
    assert!(!watch.settings_changed(&settings, facts.clone()).await);
    assert!(!watch.settings_changed(&settings, facts.clone()).await);
    std::fs::remove_file(node_file).unwrap();
    assert!(watch.settings_changed(&settings, facts.clone()).await);
    std::fs::write(openib, "ONBOOT=yes\n").unwrap();
    assert!(watch.settings_changed(&settings, facts.clone()).await);
    assert!(!watch.settings_changed(&settings, facts.clone()).await);
}
