use super::*;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn each_binding_has_a_name_of_its_own_and_takes_its_file_away() {
    let dir = tempfile::tempdir().unwrap();
    let (first, _one) = Endpoint::bind(dir.path(), "rdma/gpudirect").unwrap();
    let (second, _two) = Endpoint::bind(dir.path(), "rdma/gpudirect").unwrap();
    assert_ne!(first.name(), second.name());
    assert!(first.name().starts_with("gpurdma-rdma-gpudirect-"));
    drop(first);
    assert_eq!(names(dir.path()), [second.name()]);
}

#[tokio::test]
async fn notices_that_its_file_is_gone_or_another() {
    let dir = tempfile::tempdir().unwrap();
    let (endpoint, _listener) = Endpoint::bind(dir.path(), "rdma/gpudirect").unwrap();
    assert!(!endpoint.vanished());
    std::fs::remove_file(dir.path().join(endpoint.name())).unwrap();
    assert!(endpoint.vanished());
    std::fs::write(dir.path().join(endpoint.name()), "").unwrap();
    assert!(endpoint.vanished());
    let name = endpoint.name().to_owned();
    drop(endpoint);
    assert_eq!(names(dir.path()), [name], "another's file is left alone");
}

#[tokio::test]
async fn long_resource_names_fit_a_socket_path() {
    let dir = tempfile::tempdir().unwrap();
    let (endpoint, _listener) =
        Endpoint::bind(dir.path(), &format!("{}/x", "a".repeat(240))).unwrap();
    assert!(
        "/var/lib/kubelet/device-plugins/".len() + endpoint.name().len() <= 107,
        "{}",
        endpoint.name()
    );
}

#[test]
fn an_impossible_directory_is_named() {
    let error = Endpoint::bind(Path::new("/nonexistent"), "rdma/x").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("listen on /nonexistent/gpurdma-rdma-x-"),
        "{error}"
    );
}

#[tokio::test]
async fn removes_only_its_own_sockets_that_nobody_listens_on() {
    let dir = tempfile::tempdir().unwrap();
    let (live, _listener) = Endpoint::bind(dir.path(), "rdma/live").unwrap();
    for name in ["gpurdma-dead.sock", "other.sock"] {
        drop(std::os::unix::net::UnixListener::bind(dir.path().join(name)).unwrap());
    }
    std::fs::write(dir.path().join("gpurdma-file.sock"), "").unwrap();
    std::fs::write(dir.path().join("kubelet_internal_checkpoint"), "").unwrap();
    remove_stale(dir.path());
    let mut expected = vec![
        "gpurdma-file.sock",
        live.name(),
        "kubelet_internal_checkpoint",
        "other.sock",
    ];
    expected.sort_unstable();
    assert_eq!(names(dir.path()), expected);
}
