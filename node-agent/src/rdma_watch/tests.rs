use super::*;

#[tokio::test]
async fn only_a_change_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    let mut watch = RdmaWatch::default();
    assert!(!watch.changed(&root).await, "the first look");
    assert!(!watch.changed(&root).await);
    let device = directory.path().join("sys/class/infiniband_verbs/uverbs0");
    std::fs::create_dir_all(&device).unwrap();
    assert!(watch.changed(&root).await);
    assert!(!watch.changed(&root).await);
    std::fs::rename(&device, device.with_file_name("uverbs1")).unwrap();
    assert!(watch.changed(&root).await);
    assert!(!watch.changed(&root).await);
}
