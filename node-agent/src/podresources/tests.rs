use std::path::PathBuf;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use super::*;
use crate::proto::pod_resources_lister_server::{PodResourcesLister, PodResourcesListerServer};
use crate::proto::{ContainerResources, PodResources};

/// A kubelet that answers what it was given.
struct Kubelet {
    devices: Vec<ContainerDevices>,
    pods: Vec<PodResources>,
    silent: bool,
}

#[tonic::async_trait]
impl PodResourcesLister for Kubelet {
    async fn list(
        &self,
        _: Request<ListPodResourcesRequest>,
    ) -> Result<Response<ListPodResourcesResponse>, Status> {
        Ok(Response::new(ListPodResourcesResponse {
            pod_resources: self.pods.clone(),
        }))
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<AllocatableResourcesRequest>,
    ) -> Result<Response<AllocatableResourcesResponse>, Status> {
        if self.silent {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(AllocatableResourcesResponse {
            devices: self.devices.clone(),
        }))
    }
}

fn serve(dir: &tempfile::TempDir, kubelet: Kubelet) -> PathBuf {
    let path = dir.path().join("kubelet.sock");
    let incoming = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
    let server = tonic::transport::Server::builder()
        .add_service(PodResourcesListerServer::new(kubelet))
        .serve_with_incoming(incoming);
    tokio::spawn(server);
    path
}

fn devices(name: &str, ids: &[&str]) -> ContainerDevices {
    ContainerDevices {
        resource_name: name.to_owned(),
        device_ids: ids.iter().map(|&id| id.to_owned()).collect(),
    }
}

#[tokio::test]
async fn a_kept_connection_is_with_the_kubelet_that_listens_now() {
    let dir = tempfile::tempdir().unwrap();
    let kubelet = |id| Kubelet {
        devices: vec![devices("rdma/gpudirect", &[id])],
        pods: Vec::new(),
        silent: false,
    };
    let mut connection = Connection::default();
    let path = serve(&dir, kubelet("GPU-a"));
    let first = connection.ask(&path, DEADLINE).await.unwrap();
    let again = connection.ask(&path, DEADLINE).await.unwrap();
    assert_eq!(first, again);
    // The old one still answers who is connected, and keeps its inode.
    std::fs::rename(&path, dir.path().join("old.sock")).unwrap();
    serve(&dir, kubelet("GPU-b"));
    let other = connection.ask(&path, DEADLINE).await.unwrap();
    assert_eq!(
        other.allocatable["rdma/gpudirect"],
        ["GPU-b".to_owned()].into()
    );
}

#[tokio::test]
async fn reads_allocatable_and_held() {
    let dir = tempfile::tempdir().unwrap();
    let container = ContainerResources {
        name: "train".to_owned(),
        devices: vec![devices("rdma/gpudirect", &["GPU-b"])],
    };
    let pod = PodResources {
        name: "job-0".to_owned(),
        namespace: "team".to_owned(),
        containers: vec![container],
    };
    // The kubelet sends one entry per device and NUMA node: entries of one resource are joined.
    let split = vec![
        devices("rdma/gpudirect", &["GPU-a"]),
        devices("rdma/gpudirect", &["GPU-b"]),
    ];
    let path = serve(
        &dir,
        Kubelet {
            devices: split,
            pods: vec![pod],
            silent: false,
        },
    );
    let answer = Connection::default().ask(&path, DEADLINE).await.unwrap();
    assert_eq!(answer.allocatable["rdma/gpudirect"].len(), 2);
    assert_eq!(answer.held["rdma/gpudirect"]["GPU-b"].pod, "job-0");
    assert_eq!(
        answer.held_of(["rdma/gpudirect", "other"]),
        ["GPU-b".to_owned()].into()
    );
}

#[tokio::test]
async fn nobody_listens() {
    let dir = tempfile::tempdir().unwrap();
    let error = Connection::default()
        .ask(&dir.path().join("absent.sock"), DEADLINE)
        .await
        .unwrap_err();
    assert!(
        matches!(error, PodResourcesError::Connect { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_silent_kubelet_meets_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let path = serve(
        &dir,
        Kubelet {
            devices: vec![],
            pods: vec![],
            silent: true,
        },
    );
    let error = Connection::default()
        .ask(&path, Duration::from_millis(200))
        .await
        .unwrap_err();
    assert!(
        matches!(error, PodResourcesError::Deadline { .. }),
        "{error}"
    );
}
